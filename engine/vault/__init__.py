"""Encryption of stored secrets, and redaction of texts for people. It must never write a value in clear."""

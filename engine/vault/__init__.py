"""Keeps secrets encrypted where they are stored and out of what people read. It must never write a value anywhere in clear."""

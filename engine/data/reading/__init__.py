"""Reads of one tenant's rows."""

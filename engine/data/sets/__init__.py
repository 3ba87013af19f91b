"""Exposed tables and collections, bound to one tenant."""

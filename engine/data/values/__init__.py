"""Kinds of column values and how databases store them."""

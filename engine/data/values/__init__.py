"""Kinds of column value and how each database keeps them."""

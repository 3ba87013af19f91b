"""Decisions about slots: run, skip or gap. Pure functions of values; it must never read a clock or a database."""

"""Bounds of recurrence rules and sets."""

RULE_BYTES = 4096
TEXT_BYTES = 65_536
DATES = 1000
RULES = 16

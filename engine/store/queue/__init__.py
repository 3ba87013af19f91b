"""Rows that wait: due clocks, ready actions, per-schedule order, placements, outbox. It must never decide policy."""

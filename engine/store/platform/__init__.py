"""Rows that belong to no tenant: nodes, named locks, gauges, idempotency keys."""

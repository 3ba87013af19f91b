"""What belongs to no tenant: nodes, named locks, gauges, idempotency keys."""

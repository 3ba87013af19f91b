"""Alerts: rules, and the evaluation that raises, closes and sends them. It never sends anything itself: the outbox does."""

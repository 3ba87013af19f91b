"""Daily usage of tenants, budgets, reservations, stored bytes."""

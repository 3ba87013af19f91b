"""What tenants use: daily usage, budgets, reservations, stored bytes."""

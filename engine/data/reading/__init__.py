"""Reading one tenant's rows."""

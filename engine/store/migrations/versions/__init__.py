"""One file per revision: expand, migrate, contract; each with a downgrade. It must never be edited after a release."""

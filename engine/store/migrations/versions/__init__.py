"""One file per revision: expand, migrate, contract. It must never be edited after a release."""

"""One file per revision: expand, migrate, contract; each with its way back. It must never be edited after a release."""

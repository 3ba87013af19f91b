"""A folder of scripts with ``schedules.toml``: read, checked, tested, played on a virtual clock, compared with a ledger."""

"""Ledgers on the command line."""

from lodger.engine.output import groups, views

groups.HELP["ledger"] = "Show the ledgers of the system, and where tenants live."
views.COLUMNS["LedgerState"] = (
    ("ledger", "name"), ("place", "place"), ("tenants", "tenants"), ("room", "room"),
    ("nodes", "nodes"), ("moving", "moving"), ("problem", "problem"),
)  # fmt: skip

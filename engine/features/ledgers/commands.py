"""Ledgers on the command line."""

from lodger.engine.output import groups, views
from lodger.engine.output.views import words

groups.HELP["ledger"] = "Show the ledgers of the system, and where tenants live."
views.COLUMNS["LedgerState"] = (
    ("ledger", "name"), ("place", "place"), ("tenants", "tenants"), ("room", lambda each: "" if each.room is None else each.room),
    ("nodes", words("nodes")), ("moving", words("moving")), ("problem", lambda each: each.problem or ""),
)  # fmt: skip

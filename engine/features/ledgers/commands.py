"""Ledgers on the command line."""

from lodger.engine.output import groups, views
from lodger.engine.output.views import words


def _number(name: str) -> views.Cell:
    """Return the cell of a number, which is empty for None."""
    return lambda each: "" if getattr(each, name) is None else str(getattr(each, name))


groups.HELP["ledger"] = "Show the ledgers of the system, and where tenants live."
views.COLUMNS["LedgerState"] = (
    ("ledger", "name"), ("place", "place"), ("tenants", _number("tenants")), ("room", _number("room")),
    ("nodes", words("nodes")), ("moving", words("moving")), ("problem", lambda each: each.problem or ""),
)  # fmt: skip

"""Locks on the command line."""

from typing import Any

from lodger.engine.core.clock import zulu
from lodger.engine.output import groups, views
from lodger.engine.output.result_output import say


def _taken(lock: Any) -> None:
    """Show a lock that was taken, or its holder."""
    say(
        "the lock has another holder"
        if lock is None
        else f"{lock.name} is held by {lock.holder} until {zulu(lock.until)}"
    )


def _freed(had: bool) -> None:
    """Show whether a lock was released."""
    say("the lock is free" if had else "this holder no longer has the lock")


groups.HELP["lock"] = "Manage locks: each has at most one holder."
views.COLUMNS["Lock"] = (
    ("lock", "name"), ("held by", "holder"), ("until", "until"), ("slot", "slot"),
    ("epoch", "epoch"),
)  # fmt: skip
views.VIEWS |= {"locks.take": _taken, "locks.free": _freed}

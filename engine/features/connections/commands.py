"""Connections on the command line."""

from typing import Any

from lodger.engine.output import groups, views
from lodger.engine.output.result_output import say


def _connection(each: Any) -> None:
    """Show a connection: its state, problem and hosts."""
    say(
        f"connection {each.name}: {each.state}{', ' + each.problem if each.problem else ''}, hosts {' '.join(each.hosts)}"
    )


def _consent(made: Any) -> None:
    """Show the link of a consent."""
    say(f"open within ten minutes, once: {made.url}")


groups.HELP["connection"] = "Manage connections: tokens of OAuth 2 providers that the engine gets and renews."
views.COLUMNS["Connected"] = (
    ("connection", "name"), ("state", "state"), ("hosts", "hosts"), ("expires", "expires_at"),
    ("problem", "problem"),
)  # fmt: skip
views.SHORT_VIEWS |= {"Connected": _connection, "Consent": _consent}

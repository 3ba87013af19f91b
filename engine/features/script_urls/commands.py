"""URLs of scripts on the command line."""

from typing import Any

from lodger.engine.output import groups, views
from lodger.engine.output.result_output import say


def _made(made: Any) -> None:
    """Show the path of a new URL, the only time."""
    say(f"URL {made.url.name} runs {made.url.script}")
    say(f"path on the API server (shown only once): {made.path}")


groups.HELP["url"] = "Manage URLs of scripts: a request to one runs a script."
views.COLUMNS["ScriptUrl"] = (
        ("url", "name"), ("script", "script"), ("signature", lambda each: each.signature or "none"), ("expires", "expires_at"),
        ("last use", "used_at"), ("created by", "created_by"),
)  # fmt: skip
views.SHORT_VIEWS["CreatedScriptUrl"] = _made

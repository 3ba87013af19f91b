"""The declared table of every code that Lodger shows: errors, outcomes of attempts, and reasons of actions.

The rows stand in ``error_table.toml``. ``lodger errors`` and ``docs/reference/errors.md`` are made from it
(``python -m lodger.engine.core.error_table > docs/reference/errors.md``), and a test holds it equal to the codes of the sources.
"""

import re
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from lodger.sandbox.limits import LIMITS
from lodger.sandbox.outcome import Outcome

OUTCOME = "outcome"
REASON = "reason"
SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One code.

    Attributes:
        met: where it is met: an HTTP status, ``command line``, ``script``, ``outcome`` or ``reason``.
        what: what happened.
        why: the rule or limit behind it; may be empty.
        fix: what to do; empty only for errors that a script catches.
    """

    code: str
    met: tuple[str, ...]
    what: str
    why: str = ""
    fix: str = ""


@cache
def error_table() -> dict[str, ErrorCode]:
    """Return every code with its row, in the order of the codes."""
    rows = tomllib.loads(files(__package__).joinpath("error_table.toml").read_text(encoding="utf-8"))
    return {
        code: ErrorCode(code, tuple(row["met"]), row["what"], limits_of(code) or row.get("why", ""), row.get("fix", ""))
        for code, row in sorted(rows.items())
    }


def limits_of(outcome: str) -> str:
    """Return the limits that end in an outcome, with their defaults; empty for a code that none does."""
    if outcome == Outcome.OK:
        return ""
    return ", ".join(f"{spec.name} ({spec.help}; default {spec.default})" for spec in LIMITS if spec.outcome == outcome)


def similar_codes(text: str) -> list[str]:
    """Return the codes that contain the text or are contained in it."""
    return [code for code in error_table() if text and (text in code or code in text)]


_HEAD = """# Errors, outcomes and reasons

Made by `python -m lodger.engine.core.error_table` from the table in `engine/core/error_table.toml`. Every error has a code and says what
happened, why, and how to fix it. Codes are stable; texts may change. `lodger errors CODE` explains one.

A number is the status over HTTP (in Python: `InputError` 422, `NotFound` 404, `Conflict` 409, `Unavailable` 503). `command line`: only
the command line shows it. `script`: a script can catch it from a host call.
"""
_SECTIONS = (
    ("Errors", lambda row: set(row.met) - {OUTCOME, REASON}),
    ("Outcomes of attempts", lambda row: OUTCOME in row.met),
    ("Reasons of actions", lambda row: REASON in row.met),
)


def page() -> str:
    """Return the page of the documentation."""
    lines = _HEAD.splitlines()
    for title, belongs in _SECTIONS:
        lines += ["", f"## {title}", "", "| code | met | what happened | why | what to do |", "|---|---|---|---|---|"]
        lines += [
            f"| `{row.code}` | {', '.join(row.met)} | {_cell(row.what)} | {_cell(row.why)} | {_cell(row.fix)} |"
            for row in error_table().values()
            if belongs(row)
        ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"[|<>*`\\]", lambda found: "&lt;" if found[0] == "<" else "\\" + found[0], text)


if __name__ == "__main__":
    sys.stdout.write(page())

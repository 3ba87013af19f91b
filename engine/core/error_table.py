"""The declared table of every code that Lodger shows: errors, outcomes of attempts, and reasons of actions.

The rows stand in ``error_table.toml`` with placeholders; a raise gives a code and the values. ``lodger errors`` and
``docs/reference/errors.md`` are made from it (``make docs``),
and tests hold it equal to the codes and the placeholders of the sources.

A code with several causes has a row for each, named ``code.cause``: callers see the code, and the text of the cause.
"""

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

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
        causes: the same code's rows for single causes.
    """

    code: str
    met: tuple[str, ...]
    what: str
    why: str = ""
    fix: str = ""
    causes: tuple["ErrorCode", ...] = ()


class Texts(NamedTuple):
    """What happened, why, and how to fix it."""

    what: str
    why: str
    fix: str


@cache
def lines() -> dict[str, str]:
    """Return the TOML line of each row of the table by ``code`` or ``code.cause``; a line is parsed when its row is needed."""
    from importlib.resources import files  # only for errors

    text = files(__package__).joinpath("error_table.toml").read_text(encoding="utf-8")
    return {line.partition(" = ")[0].strip('"'): line for line in text.splitlines() if line[:1] not in {"", "#"}}


@cache
def row_of(code: str) -> dict[str, Any]:
    """Return a row as it is written, with placeholders. Raises KeyError for a code that has none."""
    import tomllib  # only for errors

    (row,) = tomllib.loads(lines()[code]).values()
    return dict(row)


def load() -> None:
    """Read the table now: an error can be explained even when no file can be opened any more."""
    row_of("internal_error")


def texts(code: str, values: Mapping[str, Any]) -> Texts:
    """Return the texts of a row with the values in place of its placeholders; lists are joined by commas."""
    row = row_of(code)
    what, why, fix = (_FILLED.vformat(row.get(part, ""), (), values) for part in Texts._fields)
    return Texts(what, why, fix)


class _Filled(string.Formatter):
    """A formatter of the table's texts: lists are joined by commas."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Iterable) and not isinstance(value, str | bytes):
            return ", ".join(str(each) for each in value)
        return str(super().format_field(value, format_spec))


_FILLED = _Filled()


@cache
def error_table() -> dict[str, ErrorCode]:
    """Return every code with its row, in the order of the codes; placeholders are shown as words in capitals."""
    causes: dict[str, list[ErrorCode]] = {}
    for name in lines():
        code, _, cause = name.partition(".")
        if cause:
            causes.setdefault(code, []).append(_explained(name))
    return {name: _explained(name, tuple(causes.get(name, ()))) for name in sorted(lines()) if "." not in name}


def _explained(name: str, causes: tuple[ErrorCode, ...] = ()) -> ErrorCode:
    """Return a row of the table as an error code; placeholders are shown as words in capitals."""
    code = name.partition(".")[0]
    what, why, fix = (_named(row_of(name).get(part, "")) for part in Texts._fields)
    return ErrorCode(code, tuple(row_of(code)["met"]), what, limits_of(name) or why, fix, causes)


def _named(text: str) -> str:
    """Replace each placeholder of a text by its name in capitals."""
    return "".join(before + (name or "").upper() for before, name, _, _ in _FILLED.parse(text))


def limits_of(outcome: str) -> str:
    """Return the limits that end in an outcome, with their defaults; empty for other codes."""
    if outcome == Outcome.OK:
        return ""
    return ", ".join(f"{spec.name} ({spec.help}; default {spec.default})" for spec in LIMITS if spec.outcome == outcome)


def similar_codes(text: str) -> list[str]:
    """Return the codes that contain the text or are contained in it."""
    return [code for code in error_table() if text and (text in code or code in text)]

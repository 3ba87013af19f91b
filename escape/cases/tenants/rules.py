"""Chapter G and class 21: rules, zones and texts that are costly to evaluate or parse. No worker runs; the engine is called."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lodger.engine.recurrence.query import answer
from lodger.escape.attack_files import cases_of
from lodger.escape.case import ENGINE
from lodger.escape.evidence import Escaped, Trial, value_of, within
from lodger.sandbox.job import Report
from lodger.sandbox.outcome import Outcome

_AFTER = "2026-11-21T12:00:01Z"
#: Twenty times the allowed time of a call.
_MAX_MS = 1000.0


def figures(**facts: Any) -> Report:
    """Return a report with measured values as its result."""
    return Report(Outcome.OK, result=json.dumps(facts))


def _timed(ask: Callable[[], Any]) -> Report:
    """Return the report of a call with its CPU time."""
    started = time.thread_time()  # CPU time, independent of other load on the host
    try:
        found = ask()
    except Exception as problem:  # noqa: BLE001 - any exception is a finding
        return figures(finished=False, why=type(problem).__name__)
    return figures(finished=True, ms=(time.thread_time() - started) * 1000, answer=found)


def _in_time(trial: Trial) -> str:
    """Check that a rule was answered within its time."""
    found = value_of(trial.report)
    if not found["finished"]:
        raise Escaped(f"it was not answered: {found['why']}")
    within("ms for the answer", found["ms"], _MAX_MS)
    return f"answered in {found['ms']:.1f} ms: {str(found['answer'])[:120]}"


def _short(found: dict[str, Any]) -> Any:
    """Return the error code, reason or next slot of an answer."""
    error = found.get("error")
    return error["code"] if error else found["reason"] or found["next"][:1]


def _asked(rule: str, **more: str) -> Any:
    """Return a short form of the answer of ``lodger next`` about a rule."""
    return _short(answer({"rule": rule, "after": _AFTER, "n": 1, **more}))


@dataclass(frozen=True, slots=True)
class AskRule:
    """Computes the next slot of a rule."""

    text: str

    def __call__(self) -> Report:
        """Return a report of the time taken."""
        return _timed(lambda: _asked(self.text))


@dataclass(frozen=True, slots=True)
class ReadText:
    """Parses a text that is costly for backtracking parsers."""

    text: str
    read: Callable[[str], Any]

    def __call__(self) -> Report:
        """Return a report of the time taken."""
        return _timed(lambda: self.read(self.text))


@dataclass(frozen=True, slots=True)
class AskZone:
    """Evaluates a rule in a zone that is a path."""

    zone: str

    def __call__(self) -> Report:
        """Return a report of the refusal."""
        error = answer({"rule": "FREQ=DAILY", "after": _AFTER, "tz": self.zone}).get("error", {})
        return figures(read=0, code=error.get("code", ""))


def _address(text: str) -> str:
    """Return the checked mail address, or the code of its refusal."""
    from lodger.engine.capabilities.mail import checked_address
    from lodger.engine.core.refusal import CallRefused

    try:
        return checked_address(text)
    except CallRefused as refused:
        return refused.code


def _scanned(text: str) -> str:
    """Return the result of the JSON scanner on a text."""
    from lodger.sandbox import prescan

    try:
        return str(prescan.parse(text.encode(), max_bytes=1 << 21, max_depth=64))
    except prescan.JsonRefused as refused:
        return refused.code


def _origin(text: str) -> str:
    """Return the origin of a text, or the code of its refusal."""
    from lodger.engine.core.access.origins import parse_origin
    from lodger.engine.core.errors import InputError

    try:
        return str(parse_origin(text))
    except InputError as refused:
        return refused.code


def _not_read(trial: Trial) -> str:
    """Check that no file was read as a zone."""
    found = value_of(trial.report)
    if found["read"] or not found["code"]:
        raise Escaped(f"{found['read']} bytes of a file were read as a zone")
    return f"refused: {found['code']}"


_READERS: dict[str, Callable[[str], str]] = {"address": _address, "json": _scanned, "origin": _origin}

CASES = [
    *cases_of(
        __file__,
        ".txt",
        checks={"in_time": _in_time, "not_read": _not_read},
        common={"runtimes": ENGINE},
        rule=lambda text: {"act": AskRule(text)},
        asked=lambda text: {"act": ReadText(text, _asked)},
        read=lambda text, by: {"act": ReadText(text, _READERS[by])},
        zone=lambda name: {"act": AskZone(name)},
    )
]

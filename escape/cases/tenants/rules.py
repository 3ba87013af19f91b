"""Chapter G and class 21: rules, zones and texts that are costly to evaluate or parse. No worker runs; the engine is called."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lodger.engine.recurrence.query import answer
from lodger.escape.attack_files import attacks
from lodger.escape.case import ENGINE, Case
from lodger.escape.evidence import Check, Escaped, Trial, value_of, within
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


_ALL_MINUTES = ",".join(map(str, range(60)))
_TIMES = f"FREQ=DAILY;BYHOUR={','.join(map(str, range(24)))};BYMINUTE={_ALL_MINUTES};BYSECOND={_ALL_MINUTES};BYMONTH=2;BYMONTHDAY=30"
_RULES = (
    *attacks(__file__, ".txt")["rules"],
    ("116-times", "every minute written out, on a day there is not", _TIMES),
)
#: Texts that are costly for backtracking parsers: name, mechanism, text, parser.
TEXTS: tuple[tuple[int, str, str, str, Callable[[str], Any]], ...] = (
    (117, "schyntax-nest", "groups in groups in groups", "{" * 2000 + "min(*)" + "}" * 2000, _asked),
    (117, "schyntax-ranges", "a thousand ranges", "min(" + ",".join("1..5%2" for _ in range(500)) + ")", _asked),
    (117, "cron-list", "a thousand steps in a list", ",".join("*/1" for _ in range(1000)) + " * * * *", _asked),
    (117, "digits", "a number of four thousand digits", "every " + "9" * 4000 + "s", _asked),
    (117, "digits-wide", "digits of another script", "every " + "\u0663" * 40 + "s", _asked),
    (117, "blanks", "four thousand blanks", "0" + " " * 4000 + "9 * * *", _asked),
    (117, "rule-parts", "sixty thousand characters of parts", "FREQ=DAILY" + ";BYHOUR=1" * 6000, _asked),
    (117, "duration", "a duration without end", "P" + "1Y" * 1500, _asked),
    (21, "address", "an address of a million characters", "a." * 500_000 + "@", lambda text: _address(text)),
    (21, "json-quotes", "a million quotes", '"' * 1_000_000, lambda text: _scanned(text)),
    (21, "json-escapes", "half a million escapes without an end", '"' + "\\" * 999_999, lambda text: _scanned(text)),
    (21, "json-brackets", "a million brackets", "[" * 1_000_000, lambda text: _scanned(text)),
    (21, "origin", "a host of a hundred thousand dots", "a." * 50_000, lambda text: _origin(text)),
)
#: Zones that are paths: name, zone.
ZONES = (
    ("up", "../../../../../../etc/passwd"),
    ("absolute", "/etc/passwd"),
    ("inside-up", "Europe/../../../../etc/passwd"),
    ("proc", "/proc/self/environ"),
    ("device", "/dev/zero"),
    ("hosts", "../../etc/hosts"),
    ("dots", "Europe/./../../../etc/passwd"),
    ("double", "//etc//passwd"),
)


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


def _case(name: str, wall: str, mechanism: str, act: Any, seen: Check, story: str) -> Case:
    """Return a case that calls the engine, without a worker."""
    letter = "B" if int(name.partition("-")[0]) < 37 else "G"
    return Case(f"{letter}{name}", wall, mechanism, seen=seen, story=story, runtimes=ENGINE, act=act)


CASES = [
    *(
        _case(
            name,
            "bounded_rules",
            mechanism,
            AskRule(text),
            _in_time,
            "The next slot of a rule is computed directly: its cost does not depend on the rule.",
        )
        for name, mechanism, text in _RULES
    ),
    *(
        _case(
            f"{number}-text-{name}",
            "linear_patterns",
            mechanism,
            ReadText(text, read),
            _in_time,
            "Parsers of tenants' texts read each character once.",
        )
        for number, name, mechanism, text, read in TEXTS
    ),
    *(
        _case(
            f"118-{name}",
            "known_zones",
            f"the zone {zone}",
            AskZone(zone),
            _not_read,
            "A zone is a name from a list; no file is opened by it.",
        )
        for name, zone in ZONES
    ),
]

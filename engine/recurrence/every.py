"""Anchored intervals: anchor + k × period in whole microseconds, so no restart or rounding lets them drift.

They have no wall clock: ``every 24 hours`` is that long, whatever a zone does; whole days are days of a zone, and English.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from math import gcd

from lodger.engine.recurrence.duration import DAY_US, UNITS, duration_in_words, parse_duration
from lodger.engine.recurrence.instant import FIRST, LAST, format_instant, instant_us, parse_time, us_instant
from lodger.engine.recurrence.rule import Pace, Recurrence
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import Steps

_FIRST_US, _LAST_US = instant_us(FIRST), instant_us(LAST)
_RATE = re.compile(r"[ \t\r\n]*rate\(([^()]*)\)[ \t\r\n]*\Z", re.IGNORECASE)
_HEAD = re.compile(r"[ \t\r\n]*(?:@?every[ \t]+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Every(Recurrence):
    """A slot at each anchor + k × period (a Recurrence).

    Attributes:
        period_us: distance of neighbouring slots, microseconds, at least one.
        anchor_us: microseconds since 1970 of one slot.
        starts: whether the anchor is the first slot; otherwise the slots go back to year 1.
        last_us: no slot lies after it.
    """

    period_us: int
    anchor_us: int = 0
    starts: bool = False
    last_us: int = _LAST_US

    def _first_us(self) -> int:
        """Return the first slot in microseconds since 1970."""
        if self.starts:
            return self.anchor_us
        return _FIRST_US + (self.anchor_us - _FIRST_US) % self.period_us

    def next_from(self, instant: datetime, steps: Steps) -> datetime | None:
        """First slot at or after the instant."""
        wanted = instant_us(instant)
        slot = max(wanted + (self.anchor_us - wanted) % self.period_us, self._first_us())
        return us_instant(slot) if slot <= self.last_us else None

    def text(self) -> str:
        """Return the rule as one exact English sentence."""
        how = "starting at" if self.starts else "counted from"
        anchor = us_instant(self.anchor_us)
        last = f", until {format_instant(us_instant(self.last_us))}" if self.ends() else ""
        return (
            f"Every {duration_in_words(self.period_us, days=False)}, {how} {anchor:%A} {format_instant(anchor)}{last}"
        )

    def ends(self) -> bool:
        """Whether the rule has a last slot."""
        return self.last_us < _LAST_US

    def pace(self) -> Pace:
        """Return the distance of neighbouring slots as bounds: always the period."""
        return Pace(self.period_us, -(-DAY_US // self.period_us), gcd(self.period_us, self.anchor_us))


#: The sentence of an interval.
_SENTENCE = re.compile(
    r"[ \t\r\n]*every[ \t]+(?P<length>[^,]+), (?P<how>counted from|starting at) \w+ (?P<anchor>\S+?)(?:, until (?P<last>\S+))?[ \t\r\n]*\Z",
    re.IGNORECASE,
)


def parse_every(text: str, anchor: datetime | None = None, *, starts: bool = True) -> Every:
    """Read ``every 90s``, ``@every 1h30m``, ``PT90S``, or the sentence of an interval.

    Args:
        text: the rule.
        anchor: aware instant of a slot; None counts from 1970-01-01T00:00:00Z, without a first slot.
        starts: whether the anchor is the first slot.

    Raises:
        RuleInvalid: for a length that is none, or is zero.
    """
    if said := _SENTENCE.match(text):
        period = _length(said["length"], said.start("length"))
        first, last = (parse_time(said[name], said.start(name)) if said[name] else None for name in ("anchor", "last"))
        if first and first.tzinfo and (last is None or last.tzinfo):
            last_us = _LAST_US if last is None else instant_us(last)
            return Every(period, instant_us(first), said["how"].lower() == "starting at", last_us)
    at, length = _length_of(text)
    period = _length(length, at)
    return Every(period) if anchor is None else Every(period, instant_us(anchor), starts=starts)


def _length_of(text: str) -> tuple[int, str]:
    """Return the length that a text names, and its place: after *every*, or in ``rate(…)`` of Amazon."""
    if rate := _RATE.match(text):
        return rate.start(1), rate[1]
    head = _HEAD.match(text)
    at = head.end() if head else 0
    return at, text[at:].rstrip(" \t\r\n")


def _length(length: str, at: int) -> int:
    """Return a length of time in microseconds; raises RuleInvalid if it is none or zero. ``at`` is its position in the rule."""
    unit = UNITS.get(length.lower()) if length.isascii() and len(length) > 2 else None
    period = unit or parse_duration(length, at)
    if not period:
        raise RuleInvalid("every_zero", index=at)
    return period


def is_interval(text: str) -> bool:
    """Whether a text is ``every`` and a length, and nothing else, or an ISO 8601 duration, or the sentence of an interval."""
    if text.lstrip()[:6].lower() == "@every" or _SENTENCE.match(text) or _RATE.match(text):
        return True
    length = _length_of(text)[1]
    if length == text.strip():
        return re.match(r"[Pp](?:[0-9]|T[0-9])", length) is not None
    try:
        _length(length, 0)
    except RuleInvalid as error:
        return error.code == "every_zero"
    return True


def whole_days(text: str) -> int:
    """Return how many days an interval is that has no smaller unit; 0 for any other text."""
    length = _length_of(text)[1].strip()
    if re.search(
        r"[0-9. ](?:h|hr|hrs|hours?|m|mins?|minutes?|s|secs?|seconds?|ms|milliseconds?)\b|T",
        length,
        re.IGNORECASE if length[:1] not in "Pp" else 0,
    ):
        return 0
    try:
        period = _length(length, 0)
    except RuleInvalid:
        return 0
    return 0 if period % DAY_US else period // DAY_US

"""Anchored intervals: anchor + k × period in whole microseconds, so no restart or rounding lets them drift.

They have no wall clock: ``every 1 day`` is every 24 hours, whatever a zone does.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lodger.engine.recurrence.calendar.min_spacing import of_interval
from lodger.engine.recurrence.duration import UNITS, duration_in_words, parse_duration
from lodger.engine.recurrence.instant import format_instant
from lodger.engine.recurrence.rule import Pace, Recurrence
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import Steps

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_HEAD = re.compile(r"[ \t\r\n]*(?:@?every[ \t]+)?", re.IGNORECASE)


def instant_us(instant: datetime) -> int:
    """Microseconds since 1970 of an aware instant."""
    if instant.tzinfo is None:
        raise TypeError("a naive datetime is not an instant")
    return (instant - _EPOCH) // _MICROSECOND


def us_instant(us: int) -> datetime:
    """Return the aware UTC instant of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=us)


@dataclass(frozen=True, slots=True)
class Every(Recurrence):
    """A slot at each anchor + k × period (a Recurrence).

    Attributes:
        period_us: distance of neighbouring slots, microseconds, at least one.
        anchor_us: microseconds since 1970 of one slot.
        starts: whether the anchor is the first slot; otherwise the slots go back to year 1.
    """

    period_us: int
    anchor_us: int = 0
    starts: bool = False

    def _first_us(self) -> int:
        if self.starts:
            return self.anchor_us
        return _FIRST_US + (self.anchor_us - _FIRST_US) % self.period_us

    def next_from(self, instant: datetime, steps: Steps) -> datetime | None:
        """First slot at or after the instant."""
        wanted = instant_us(instant)
        slot = max(wanted + (self.anchor_us - wanted) % self.period_us, self._first_us())
        return us_instant(slot) if slot <= _LAST_US else None

    def last_to(self, instant: datetime, steps: Steps) -> datetime | None:
        """Last slot at or before the instant."""
        wanted = instant_us(instant)
        slot = wanted - (wanted - self.anchor_us) % self.period_us
        return us_instant(slot) if slot >= self._first_us() else None

    def text(self) -> str:
        """One exact English sentence."""
        how = "starting at" if self.starts else "counted from"
        return f"Every {duration_in_words(self.period_us)}, {how} {format_instant(us_instant(self.anchor_us))}"

    def never_reason(self) -> str | None:
        """Return None: the anchor itself is a slot."""
        return None

    def ends(self) -> bool:
        """Never."""
        return False

    def shifted(self, slot: datetime) -> bool:
        """No: it has no wall clock."""
        return False

    def pace(self) -> Pace:
        """Distance of neighbouring slots."""
        return of_interval(self.period_us, self.anchor_us)


def parse_every(text: str, anchor: datetime | None = None) -> Every:
    """Read ``every 90s``, ``every day``, ``@every 1h30m``, ``PT90S``.

    Args:
        text: the rule.
        anchor: aware instant of the first slot; None counts from 1970-01-01T00:00:00Z, without a first slot.

    Raises:
        RuleInvalid: for a length that is none, or is zero.
    """
    head = _HEAD.match(text)
    at = head.end() if head else 0
    length = text[at:].rstrip(" \t\r\n")
    unit = UNITS.get(length.lower()) if length.isascii() and len(length) > 2 else None
    period = unit or parse_duration(length, at)
    if not period:
        raise RuleInvalid("every_zero", index=at)
    if anchor is None:
        return Every(period)
    return Every(period, instant_us(anchor), starts=True)

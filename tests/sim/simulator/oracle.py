"""Independent computation of a rule's slots, from the zone data, sharing no code with the engine.

All times are integer microseconds UTC.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Oracle(Protocol):
    """The slots of a rule."""

    def after(self, us: int) -> int | None:
        """Return the first slot after a time."""
        ...


@dataclass(frozen=True, slots=True)
class Regular:
    """Slots at anchor + k × period."""

    period: int
    anchor: int

    def after(self, us: int) -> int | None:
        """Return the first slot after a time."""
        if us < self.anchor:
            return self.anchor
        return self.anchor + ((us - self.anchor) // self.period + 1) * self.period


@dataclass(slots=True)
class Wall:
    """Daily times on the wall clock of a zone.

    Attributes:
        times: seconds of the day, ascending.
        gap: policy for a time that does not exist: shift, next, skip.
        both: whether an ambiguous time is two slots.
    """

    zone: ZoneInfo
    times: tuple[int, ...]
    gap: str
    both: bool
    _days: dict[int, list[int]] = field(default_factory=dict)

    def after(self, us: int) -> int | None:
        """Return the first slot after a time."""
        day = us // _DAY
        while True:
            slots = self.slots_on(day)
            at = bisect_right(slots, us)
            if at < len(slots):
                return slots[at]
            day += 1

    def slots_on(self, day: int) -> list[int]:
        """Return the slots of one UTC day, ascending."""
        kept = self._days.get(day)
        if kept is None:
            local = [date(1970, 1, 1) + timedelta(days=day + shift) for shift in (-1, 0, 1)]
            found = {slot for each in local for seconds in self.times for slot in self._instants(each, seconds)}
            kept = self._days[day] = sorted(slot for slot in found if day * _DAY <= slot < (day + 1) * _DAY)
        return kept

    def _instants(self, day: date, seconds: int) -> list[int]:
        """Return the instants of a local time: none in a gap, or two in a fold, as the policy says."""
        naive = datetime.combine(day, time()) + timedelta(seconds=seconds)
        early, late = (naive.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if early.astimezone(self.zone).replace(tzinfo=None) == naive:
            twice = early != late and self.both
            return [_us(early), _us(late)] if twice else [_us(early)]
        # The time does not exist: fold 0 uses the offset before the jump, fold 1 the one after.
        if self.gap == "shift":
            return [_us(early)]
        return [self._jump(_us(late), _us(early))] if self.gap == "next" else []

    def _jump(self, low: int, high: int) -> int:
        """Return the first second with the offset of ``high``."""
        wanted = self._offset(high)
        while high - low > _SECOND:
            middle = (low + high) // 2 // _SECOND * _SECOND
            if self._offset(middle) == wanted:
                high = middle
            else:
                low = middle
        return high

    def _offset(self, us: int) -> timedelta | None:
        return (_EPOCH + timedelta(microseconds=us)).astimezone(self.zone).utcoffset()


@dataclass(frozen=True, slots=True)
class Several:
    """Union of rules minus exclusions, within [start, end)."""

    rules: tuple[Oracle, ...]
    without: tuple[Oracle, ...] = ()
    end: int | None = None

    def after(self, us: int) -> int | None:
        """Return the first slot after a time."""
        while True:
            found = min((slot for rule in self.rules if (slot := rule.after(us)) is not None), default=None)
            if found is None or (self.end is not None and found >= self.end):
                return None
            if not any(rule.after(found - 1) == found for rule in self.without):
                return found
            us = found


def names(oracle: Oracle, us: int) -> bool:
    """Return whether a time is a slot."""
    return oracle.after(us - 1) == us


def count(oracle: Oracle, first: int, last: int) -> int:
    """Return the number of slots in [first, last]."""
    if isinstance(oracle, Regular):
        begin = oracle.after(first - 1)
        return 0 if begin is None or begin > last else (last - begin) // oracle.period + 1
    if isinstance(oracle, Wall):
        number = 0
        for day in range(first // _DAY, last // _DAY + 1):
            slots = oracle.slots_on(day)
            number += bisect_right(slots, last) - bisect_left(slots, first)
        return number
    number, slot = 0, oracle.after(first - 1)
    while slot is not None and slot <= last:
        number, slot = number + 1, oracle.after(slot)
    return number


def _us(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)

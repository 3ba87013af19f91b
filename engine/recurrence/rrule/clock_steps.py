"""Every n-th hour, minute or second of a sub-daily rule, limited by BYHOUR, BYMINUTE and BYSECOND.

Steps are numbered: step k is the unit origin + k × INTERVAL, counted in units since 1970. Which steps have an allowed
position in the day repeats after units-per-day / gcd steps, so the next such step is one search in a byte string (or in a
short list). It belongs to the rule when its day is allowed too; days and steps take turns to jump ahead of each other.
Where few positions can be met at all, the days on which one is met are residues, found by modular inversion.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate, compress
from math import gcd

from lodger.engine.recurrence import civil, timeset
from lodger.engine.recurrence.meter import spend
from lodger.engine.recurrence.rrule.days import Days, DaySet
from lodger.engine.recurrence.rrule.phase import Phase
from lodger.engine.recurrence.rrule.residues import LongSteps, Residues, Turning
from lodger.engine.recurrence.year_kinds import KindMasks

#: Up to so many positions that can be met, the days on which one is met are computed; with more nearly every day has one.
_SPARSE = 2048
#: Steps of so many days and more are few enough to list the days that have one.
_LONG_DAYS = 28
#: Up to so many steps before they repeat, hits are kept as bytes whatever their number.
_SHORT = 4096


class ClockSteps:
    """Members are unit numbers: hours, minutes or seconds since 1970-01-01T00:00:00 local.

    Args:
        allowed: days.
        table: one byte per unit of a day, 1 when its position is allowed.
        interval: INTERVAL, in units.
        origin: DTSTART's unit number.
        days_of: makes the candidate days of the phase in which steps meet an allowed position; allowed days when left out.
    """

    def __init__(
        self,
        allowed: KindMasks | None,
        table: bytes,
        interval: int,
        origin: int,
        days_of: Callable[[Phase | None], DaySet] | None = None,
    ) -> None:
        self.table = table
        self.units = units = len(table)
        spend(units // 5)
        self.n = interval
        self.origin = origin
        common = gcd(interval, units)
        meeting = table[origin % common :: common]
        self._size = meeting.count(1)
        #: Days after which the positions of the day repeat; 1 when every day has the same.
        self.turn_days = interval // common
        self.turn = units // common  # steps after which positions repeat
        self._full = self._size == len(meeting)
        self._hits: bytes | list[int] = b""
        self._ranks: list[int] | None = None
        if self._size and not self._full:
            sparse = self._size <= _SPARSE and self.turn > _SHORT
            self._hits = self._listed(meeting, common) if sparse else self._flagged()
        phase = self._day_phase(meeting, common)
        if days_of is None:
            assert allowed is not None
            self.days: DaySet = Days(allowed, phase)
        else:
            self.days = days_of(phase)

    def _day_phase(self, meeting: bytes, common: int) -> Phase | None:
        """The days on which a step meets an allowed position; None when all or, for certain, no day has one."""
        modulus = self.turn_days
        if not self._size or modulus == 1 or (self._full and self.n <= self.units):
            return None
        if self._size <= _SPARSE:
            inverse = pow(self.units // common, -1, modulus)
            base = self.origin // common
            residues, at = set(), meeting.find(1)
            while at >= 0:
                residues.add((base - at) * inverse % modulus)
                at = meeting.find(1, at + 1)
            return Residues(modulus, list(residues))
        if self.n >= _LONG_DAYS * self.units:
            return LongSteps(self.table, self.n, self.origin)
        if self.n < self.units and b"\x01" * self.n in self.table:
            return None
        spend(modulus // 50 + self.turn // 5)
        flags, units = bytearray(modulus), self.units
        hits = range(self.origin, self.origin + self.turn * self.n, self.n)
        for unit in compress(hits, self._hits) if isinstance(self._hits, bytes) and self._hits else hits:
            flags[unit // units % modulus] = 1
        return Turning(modulus, flags)

    def _listed(self, meeting: bytes, common: int) -> list[int]:
        inverse = pow(self.n // common, -1, self.turn)
        base = self.origin // common
        found, at = [], meeting.find(1)
        while at >= 0:
            found.append((at - base) * inverse % self.turn)
            at = meeting.find(1, at + 1)
        return sorted(found)

    def _flagged(self) -> bytes:
        """One byte per step, by going around the day's table in slices, forwards or backwards, whichever are fewer."""
        step, at = self.n % self.units, self.origin % self.units
        if step == 0:
            return self.table[at : at + 1]
        rows: list[bytes] = []
        have = 0
        while have < self.turn:
            if 2 * step <= self.units:
                row = self.table[at::step]
                at += len(row) * step - self.units
            else:
                row = self.table[at :: step - self.units]
                at += len(row) * (step - self.units) + self.units
            rows.append(row)
            have += len(row)
        return b"".join(rows)[: self.turn]

    @property
    def never(self) -> bool:
        """Whether INTERVAL never meets an allowed position of the day."""
        return not self._size

    def reachable(self) -> int:
        """Positions of the day that some day can have, a bit each."""
        common = gcd(self.n, self.units)
        kept, first = bytearray(self.units), self.origin % common
        kept[first::common] = self.table[first::common]
        return timeset.of_flags(bytes(kept))

    # -- steps

    def step_from(self, unit: int) -> int:
        """Number of the first step from this unit on."""
        return -((self.origin - unit) // self.n)

    def hit_from(self, step: int) -> int:
        """First step from this one on whose position is allowed."""
        hits = self._hits
        if not hits:
            return step
        turns, at = divmod(step, self.turn)
        if isinstance(hits, bytes):
            found = hits.find(1, at)
            return turns * self.turn + found if found >= 0 else (turns + 1) * self.turn + hits.find(1)
        i = bisect_left(hits, at)
        return turns * self.turn + (hits[i] if i < len(hits) else hits[0] + self.turn)

    def hit_to(self, step: int) -> int:
        """Last step up to this one whose position is allowed."""
        hits = self._hits
        if not hits:
            return step
        turns, at = divmod(step, self.turn)
        if isinstance(hits, bytes):
            found = hits.rfind(1, 0, at + 1)
            return turns * self.turn + found if found >= 0 else (turns - 1) * self.turn + hits.rfind(1)
        i = bisect_right(hits, at)
        return turns * self.turn + (hits[i - 1] if i else hits[-1] - self.turn)

    def next(self, unit: int) -> int | None:
        """First member from this unit on."""
        if not self._size:
            return None
        step = self.step_from(unit)
        while True:
            step = self.hit_from(step)
            found = self.origin + step * self.n
            day: int | None = found // self.units
            assert day is not None
            if day > civil.MAX_DAY:
                return None
            if self.days.contains(day):
                return found
            day = self.days.next(day + 1)
            if day is None:
                return None
            step = self.step_from(day * self.units)

    def previous(self, unit: int) -> int | None:
        """Last member up to this unit."""
        if not self._size:
            return None
        step = (unit - self.origin) // self.n
        while True:
            step = self.hit_to(step)
            found = self.origin + step * self.n
            day: int | None = found // self.units
            assert day is not None
            if day < civil.MIN_DAY:
                return None
            if self.days.contains(day):
                return found
            day = self.days.previous(day - 1)
            if day is None:
                return None
            step = ((day + 1) * self.units - 1 - self.origin) // self.n

    # -- counting

    def rank(self, unit: int) -> int:
        """How many steps with an allowed position lie before this unit, counted from the origin, days aside."""
        step = self.step_from(unit)
        if not self._hits:
            return step
        turns, at = divmod(step, self.turn)
        if isinstance(self._hits, list):
            return turns * self._size + bisect_left(self._hits, at)
        if self._ranks is None:
            self._ranks = list(accumulate(self._hits, initial=0))
        return turns * self._size + self._ranks[at]

    def forget(self) -> None:
        """Let go of what only counting needs."""
        self._ranks = None

    def at(self, unit: int) -> bool:
        """Whether the unit is a step with an allowed position, its day aside."""
        return (unit - self.origin) % self.n == 0 and bool(self.table[unit % self.units])

    def in_days(self, first: int, days: int) -> int:
        """How many members days have that are given as bits from a first day on, all of them allowed."""
        counted = at = 0
        while days:
            skip = (days & -days).bit_length() - 1
            days >>= skip
            length = (~days & days + 1).bit_length() - 1
            begin = (first + at + skip) * self.units
            counted += self.rank(begin + length * self.units) - self.rank(begin)
            days >>= length
            at += skip + length
        return counted


def position_table(hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...], unit_s: int) -> bytes:
    """One byte per unit of a day (3600, 60 or 1 seconds); an empty tuple allows every value."""
    row = b"\x01"
    if unit_s == 1:
        row = _flags(seconds, 60)
    if unit_s <= 60:
        minute, empty = row, bytes(len(row))
        row = b"".join(minute if flag else empty for flag in _flags(minutes, 60))
    hour, empty = row, bytes(len(row))
    return b"".join(hour if flag else empty for flag in _flags(hours, 24))


def _flags(values: tuple[int, ...], size: int) -> bytes:
    if not values:
        return b"\x01" * size
    flags = bytearray(size)
    for value in values:
        flags[value] = 1
    return bytes(flags)

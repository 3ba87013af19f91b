"""Every n-th hour, minute or second of a sub-daily rule, limited by BYHOUR, BYMINUTE and BYSECOND.

Units are counted from 1970; a unit belongs to the rule when its number is DTSTART's modulo INTERVAL, its position in
the day is allowed and its day is allowed. The positions that one day offers are a residue class modulo INTERVAL that
moves from day to day: ``bytes`` with a stride answer it, and the days on which a sparse class meets an allowed position
are residues modulo INTERVAL / gcd(INTERVAL, units per day), found by modular inversion instead of by walking.
"""

from math import gcd

from lodger.engine.recurrence import civil, timeset
from lodger.engine.recurrence.rrule.days import Allowed, Days
from lodger.engine.recurrence.rrule.phase import Phase, Residues

#: Up to so many allowed positions the days that can meet one are computed; with more nearly every day meets one.
_SPARSE = 2048
#: Up to this modulus days are grouped by their number of members.
_GROUPED = 1024


class ClockSteps:
    """Members are unit numbers: hours, minutes or seconds since 1970-01-01T00:00:00 local.

    Args:
        allowed: days.
        table: one byte per unit of a day, 1 when its position is allowed.
        interval: INTERVAL, in units.
        origin: DTSTART's unit number.
    """

    def __init__(self, allowed: Allowed, table: bytes, interval: int, origin: int) -> None:
        self._table = table
        self._units = len(table)
        self._n = interval
        self._origin = origin
        self._full = 0 not in table
        self._rows: dict[int, bytes] = {}
        self._never = False
        self._grouped: list[tuple[int, Residues]] | None = None
        self._candidates = Days(allowed, self._day_phase())

    def _day_phase(self) -> Phase | None:
        n, units = self._n, self._units
        common = gcd(n, units)
        meeting = self._table[self._origin % common :: common]
        size = meeting.count(1)
        if not size:
            self._never = True
            return None
        modulus = n // common
        if modulus == 1 or (self._full and n <= units) or size > _SPARSE:
            return None
        inverse = pow(units // common, -1, modulus)
        base = self._origin // common
        residues, at = set(), meeting.find(1)
        while at >= 0:
            residues.add((base - at) * inverse % modulus)
            at = meeting.find(1, at + 1)
        return Residues(modulus, list(residues))

    def reachable(self) -> int:
        """Positions of the day that some day can have, a bit each."""
        common = gcd(self._n, self._units)
        kept, first = bytearray(self._units), self._origin % common
        kept[first::common] = self._table[first::common]
        return timeset.of_flags(bytes(kept))

    @property
    def never(self) -> bool:
        """Whether INTERVAL never meets an allowed position of the day."""
        return self._never

    def _row(self, day: int) -> tuple[int, bytes]:
        """First position of the day's residue class, and the table along the class."""
        first = (self._origin - day * self._units) % self._n
        if self._n == 1:
            return 0, self._table
        if first >= self._units:
            return first, b""
        if self._n >= 256:
            return first, self._table[first :: self._n]
        row = self._rows.get(first)
        if row is None:
            row = self._rows[first] = self._table[first :: self._n]
        return first, row

    def in_day(self, day: int, position: int) -> int | None:
        """Smallest allowed position of the day from there on."""
        first, row = self._row(day)
        at = row.find(1, max(0, -((first - position) // self._n)))
        return first + at * self._n if at >= 0 else None

    def in_day_back(self, day: int, position: int) -> int | None:
        """Greatest allowed position of the day up to there."""
        first, row = self._row(day)
        if position < first:
            return None
        at = row.rfind(1, 0, (position - first) // self._n + 1)
        return first + at * self._n if at >= 0 else None

    def count_in_day(self, day: int, position: int) -> int:
        """How many allowed positions the day has up to there."""
        first, row = self._row(day)
        if position < first:
            return 0
        return row.count(1, 0, (position - first) // self._n + 1)

    def count_days(self, year: int, days: int) -> int:
        """How many members the first so many days of a year have."""
        start = civil.year_start(year)
        bits = self._candidates.allowed.mask(year) & (1 << days) - 1
        if not bits or self._never:
            return 0
        if self._units % self._n == 0:
            return bits.bit_count() * self.count_in_day(start, self._units - 1)
        if self._full:
            return self._count_runs(bits, start)
        modulus = self._n // gcd(self._n, self._units)
        if modulus <= _GROUPED:
            return sum(count * (bits & residues.mask(year)).bit_count() for count, residues in self._groups(modulus))
        counted, bits = 0, self._candidates.mask(year) & (1 << days) - 1
        while bits:
            low = bits & -bits
            counted += self.count_in_day(start + low.bit_length() - 1, self._units - 1)
            bits ^= low
        return counted

    def _groups(self, modulus: int) -> list[tuple[int, Residues]]:
        """Days by how many members they have."""
        if self._grouped is None:
            by_count: dict[int, list[int]] = {}
            for residue in range(modulus):
                count = self.count_in_day(residue, self._units - 1)
                if count:
                    by_count.setdefault(count, []).append(residue)
            self._grouped = [(count, Residues(modulus, days)) for count, days in by_count.items()]
        return self._grouped

    def _count_runs(self, bits: int, start: int) -> int:
        """Members on runs of neighbouring days when every position is allowed."""
        counted = at = 0
        while bits:
            skip = (bits & -bits).bit_length() - 1
            bits >>= skip
            length = (~bits & bits + 1).bit_length() - 1
            first = (start + at + skip) * self._units
            end = first + length * self._units
            counted += (end - 1 - self._origin) // self._n - (first - 1 - self._origin) // self._n
            bits >>= length
            at += skip + length
        return counted

    @property
    def days(self) -> Days:
        """The days that can hold a member."""
        return self._candidates

    def next(self, unit: int) -> int | None:
        """First member from this unit on."""
        if self._never:
            return None
        day, position = divmod(unit, self._units)
        if self._candidates.contains(day):
            found = self.in_day(day, position)
            if found is not None:
                return day * self._units + found
        at: int | None = day + 1
        while at is not None and (at := self._candidates.next(at)) is not None:
            found = self.in_day(at, 0)
            if found is not None:
                return at * self._units + found
            at = self._leap(at)
        return None

    def _leap(self, day: int) -> int:
        """After a day without member: the day of the next step when steps are longer than a day."""
        if self._n <= self._units:
            return day + 1
        end = (day + 1) * self._units
        return (end + (self._origin - end) % self._n) // self._units

    def previous(self, unit: int) -> int | None:
        """Last member up to this unit."""
        if self._never:
            return None
        day, position = divmod(unit, self._units)
        if self._candidates.contains(day):
            found = self.in_day_back(day, position)
            if found is not None:
                return day * self._units + found
        at: int | None = day - 1
        while at is not None and (at := self._candidates.previous(at)) is not None:
            found = self.in_day_back(at, self._units - 1)
            if found is not None:
                return at * self._units + found
            at = at - 1 if self._n <= self._units else self._leap_back(at)
        return None

    def _leap_back(self, day: int) -> int:
        before = day * self._units - 1
        return (before - (before - self._origin) % self._n) // self._units


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

"""Which days lie in a period that INTERVAL selects: every n-th year, month, week or day, counted from DTSTART.

A phase answers for a whole year at once (``mask``) and names the next year with a selected day by arithmetic, so that
a large INTERVAL costs nothing. ``years`` bounds a proof: after so many calendar years the phase and the calendar
repeat together.
"""

from bisect import bisect_left
from math import gcd
from typing import Protocol

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.year_masks import EVERY_DAY, MONTH, span, week_one

#: Up to this modulus a residue pattern is kept as one integer; above it as a sorted list.
_WIDE = 4096


class Phase(Protocol):
    """The periods that INTERVAL selects."""

    years: int

    def on(self, day: int) -> bool:
        """Whether the day's period is selected."""
        ...

    def mask(self, year: int) -> int:
        """Bit n: day n of the year is selected."""
        ...

    def year_from(self, year: int) -> int:
        """First year from this one on that can have a selected day."""
        ...

    def year_to(self, year: int) -> int:
        """Last year up to this one that can have a selected day."""
        ...


class Years:
    """Every n-th calendar year."""

    def __init__(self, interval: int, first: int) -> None:
        self._n, self._first = interval, first
        self.years = 400 * interval // gcd(400, interval)

    def on(self, day: int) -> bool:
        """Whether the day's year is selected."""
        return (civil.civil(day)[0] - self._first) % self._n == 0

    def mask(self, year: int) -> int:
        """All days or none."""
        return EVERY_DAY if (year - self._first) % self._n == 0 else 0

    def year_from(self, year: int) -> int:
        """First selected year from here."""
        return year + (self._first - year) % self._n

    def year_to(self, year: int) -> int:
        """Last selected year up to here."""
        return year - (year - self._first) % self._n


class WeekYears:
    """Every n-th week-numbering year; its days may lie in the calendar years beside it."""

    def __init__(self, interval: int, first: int, wkst: int) -> None:
        self._n, self._first, self._wkst = interval, first, wkst
        self.years = 400 * interval // gcd(400, interval)

    def on(self, day: int) -> bool:
        """Whether the day's week-numbering year is selected."""
        year = civil.civil(day)[0]
        return bool(self.mask(year) >> (day - civil.year_start(year)) & 1)

    def mask(self, year: int) -> int:
        """The calendar year's days that belong to a selected week-numbering year."""
        start, days = civil.year_start(year), 0
        for each in (year - 1, year, year + 1):
            if (each - self._first) % self._n == 0:
                days |= span(week_one(each, self._wkst) - start, week_one(each + 1, self._wkst) - start)
        return days

    def year_from(self, year: int) -> int:
        """The year before a selected one can hold its first days."""
        selected = year - 1 + (self._first - (year - 1)) % self._n
        return max(year, selected - 1)

    def year_to(self, year: int) -> int:
        """The year after a selected one can hold its last days."""
        selected = year + 1 - (year + 1 - self._first) % self._n
        return min(year, selected + 1)


class Months:
    """Every n-th calendar month; months are counted as year * 12 + month - 1."""

    def __init__(self, interval: int, first: int) -> None:
        self._n, self._first = interval, first
        self.years = 400 * interval // gcd(4800, interval)

    def on(self, day: int) -> bool:
        """Whether the day's month is selected."""
        year, month, _ = civil.civil(day)
        return (year * 12 + month - 1 - self._first) % self._n == 0

    def mask(self, year: int) -> int:
        """The days of the selected months."""
        months = MONTH[civil.is_leap(year)]
        days = 0
        for index in range((self._first - year * 12) % self._n, 12, self._n):
            days |= months[index + 1]
        return days

    def year_from(self, year: int) -> int:
        """Year of the first selected month from January on."""
        return (year * 12 + (self._first - year * 12) % self._n) // 12

    def year_to(self, year: int) -> int:
        """Year of the last selected month up to December."""
        return (year * 12 + 11 - (year * 12 + 11 - self._first) % self._n) // 12


class Residues:
    """Days whose number, modulo ``modulus``, is one of ``residues``: every n-th day or week, and sparse clocks."""

    def __init__(self, modulus: int, residues: list[int]) -> None:
        self._m = modulus
        self._list = sorted(residues)
        self._set = frozenset(residues)
        self.years = 400 * modulus // gcd(civil.CYCLE_DAYS, modulus)
        self._pattern = 0
        if modulus <= _WIDE:
            pattern, width = sum(1 << residue for residue in self._set), modulus
            while width < modulus + 366:
                pattern |= pattern << width
                width *= 2
            self._pattern = pattern

    def on(self, day: int) -> bool:
        """Whether the day's residue is selected."""
        return day % self._m in self._set

    def mask(self, year: int) -> int:
        """The year's selected days."""
        at = civil.year_start(year) % self._m
        if self._pattern:
            return self._pattern >> at & EVERY_DAY
        days, residues = 0, self._list
        for i in range(bisect_left(residues, at), len(residues)):
            if residues[i] - at >= 366:
                return days
            days |= 1 << residues[i] - at
        for residue in residues:
            if residue + self._m - at >= 366:
                return days
            days |= 1 << residue + self._m - at
        return days

    def year_from(self, year: int) -> int:
        """Year of the first selected day from January 1 on."""
        if self._m <= 366 or year > civil.MAX_YEAR:
            return year
        start = civil.year_start(year)
        i = bisect_left(self._list, start % self._m)
        step = self._list[i] if i < len(self._list) else self._list[0] + self._m
        day = start + step - start % self._m
        return civil.civil(day)[0] if day <= civil.MAX_DAY else civil.MAX_YEAR + 1

    def year_to(self, year: int) -> int:
        """Year of the last selected day up to December 31."""
        if self._m <= 366 or year < civil.MIN_YEAR:
            return year
        end = civil.year_start(year + 1) - 1
        i = bisect_left(self._list, end % self._m + 1)
        step = self._list[i - 1] if i else self._list[-1] - self._m
        day = end + step - end % self._m
        return civil.civil(day)[0] if day >= civil.MIN_DAY else 0

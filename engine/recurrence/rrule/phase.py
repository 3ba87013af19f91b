"""Which years, months or weeks INTERVAL selects, counted from DTSTART; days and rarer things are in ``residues.py``.

A phase answers for a whole year at once (``mask``), and names the next year in which a selected day is also an allowed one:
all such years of the calendar are one integer, made when the rule is read, so that neither a large INTERVAL nor one that
never meets an allowed day costs a walk.
"""

from math import gcd

from lodger.engine.core.protocol import Protocol
from lodger.engine.recurrence import civil
from lodger.engine.recurrence.dial import highest, lowest, stride
from lodger.engine.recurrence.rrule.year_masks import span, week_one
from lodger.engine.recurrence.year_kinds import (
    EVERY_DAY,
    KIND_OF,
    MONTH,
    YEAR_OF,
    KindMasks,
    first_of_cycle,
    last_of_cycle,
)

_CYCLE_MONTHS = 4800
#: Spans of 400 years that the calendar has, the first from year 0 on.
_SPANS = 25


def _meeting(bits: int, size: int, first: int, interval: int) -> int:
    """Which numbers of the whole calendar INTERVAL selects of those that repeat after ``size``, every 400 years."""
    width, have = size * _SPANS, size
    while have < width:
        bits |= bits << have
        have *= 2
    return bits & stride(first, width, interval)


class Phase(Protocol):
    """The periods that INTERVAL selects; ``years`` is after how many calendar years they and the calendar repeat."""

    years: int

    def on(self, day: int) -> bool:
        """Whether the day's period is selected."""

    def mask(self, year: int) -> int:
        """Bit n: day n of the year is selected."""

    def prepare(self, allowed: KindMasks) -> None:
        """Make what a long search needs, when the rule is read: such a search may be the first question."""

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """First year from this one on with a selected day that is allowed."""

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Last year up to this one with a selected day that is allowed."""


class Years:
    """Every n-th calendar year."""

    def __init__(self, interval: int, first: int) -> None:
        self.n, self.first = interval, first % interval
        self.years = 400 * interval // gcd(400, interval)
        self._some: dict[KindMasks, int] = {}

    def on(self, day: int) -> bool:
        """Whether the day's year is selected."""
        return (civil.civil(day)[0] - self.first) % self.n == 0

    def mask(self, year: int) -> int:
        """All days or none."""
        return EVERY_DAY if (year - self.first) % self.n == 0 else 0

    def prepare(self, allowed: KindMasks) -> None:
        """Look at all kinds of year."""
        self._years(allowed)

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """First selected year from this one on that has an allowed day."""
        left = self._years(allowed) >> year
        return year + lowest(left) if left else None

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Like year_from, backwards."""
        left = self._years(allowed) & (2 << year) - 1
        return highest(left) if left else None

    def _years(self, allowed: KindMasks) -> int:
        """Bit n: year n is selected and has an allowed day."""
        if (found := self._some.get(allowed)) is None:
            found = self._some[allowed] = _meeting(allowed.years(), civil.CYCLE_YEARS, self.first, self.n) & ~1
        return found


class WeekYears:
    """Every n-th week-numbering year; its days may lie in the calendar years beside it."""

    def __init__(self, interval: int, first: int, wkst: int) -> None:
        self.n, self.first, self.wkst = interval, first % interval, wkst
        self.years = 400 * interval // gcd(400, interval)
        self._some: dict[KindMasks, int] = {}

    def on(self, day: int) -> bool:
        """Whether the day's week-numbering year is selected."""
        year = civil.civil(day)[0]
        return bool(self.mask(year) >> (day - civil.year_start(year)) & 1)

    def mask(self, year: int) -> int:
        """The calendar year's days that belong to a selected week-numbering year."""
        start, days = civil.year_start(year), 0
        for each in (year - 1, year, year + 1):
            if (each - self.first) % self.n == 0:
                days |= span(week_one(each, self.wkst) - start, week_one(each + 1, self.wkst) - start)
        return days

    def prepare(self, allowed: KindMasks) -> None:
        """Look at all kinds of year."""
        self._week_years(allowed)

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """First calendar year with a selected and allowed day."""
        left = self._week_years(allowed) >> year - 1 << year - 1
        while left:
            each = lowest(left)
            for there in range(max(year, each - 1), min(civil.MAX_YEAR, each + 1) + 1):
                if self.mask(there) & allowed.mask(there):
                    return there
            left &= left - 1
        return None

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Like year_from, backwards."""
        left = self._week_years(allowed) & (4 << year) - 1
        while left:
            each = highest(left)
            for there in range(min(year, each + 1), max(civil.MIN_YEAR, each - 1) - 1, -1):
                if self.mask(there) & allowed.mask(there):
                    return there
            left ^= 1 << each
        return None

    def _week_years(self, allowed: KindMasks) -> int:
        """Bit n: week-numbering year n is selected and has an allowed day; of those outside the calendar's edges one each."""
        if (found := self._some.get(allowed)) is None:
            some = []
            for year in YEAR_OF:
                first, end, days = week_one(year, self.wkst), week_one(year + 1, self.wkst), False
                for each in (year - 1, year, year + 1):
                    start = civil.year_start(each)
                    days = days or bool(allowed.mask(each) & span(first - start, end - start))
                some.append(days)
            cycle = sum(1 << n for n in range(400) if some[KIND_OF[n]])
            every = _meeting(cycle, civil.CYCLE_YEARS, self.first, self.n)
            last = civil.MAX_YEAR + 1
            if (last - self.first) % self.n == 0:
                every |= (cycle >> last % 400 & 1) << last
            found = self._some[allowed] = every
        return found


class Months:
    """Every n-th calendar month; months are counted as year * 12 + month - 1."""

    def __init__(self, interval: int, first: int) -> None:
        self.n, self.first = interval, first % interval
        self.years = 400 * interval // gcd(_CYCLE_MONTHS, interval)
        self._some: dict[KindMasks, int] = {}

    def on(self, day: int) -> bool:
        """Whether the day's month is selected."""
        year, month, _ = civil.civil(day)
        return (year * 12 + month - 1 - self.first) % self.n == 0

    def mask(self, year: int) -> int:
        """The days of the selected months."""
        months = MONTH[civil.is_leap(year)]
        days = 0
        for index in range((self.first - year * 12) % self.n, 12, self.n):
            days |= months[index + 1]
        return days

    def prepare(self, allowed: KindMasks) -> None:
        """Look at all kinds of year; months of the whole calendar are many bits, which few rules need."""
        allowed.months()

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """Year of the first selected month from January on that has an allowed day."""
        left = self._months(allowed) >> year * 12
        return year + lowest(left) // 12 if left else None

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Like year_from, backwards."""
        left = self._months(allowed) & (1 << year * 12 + 12) - 1
        return highest(left) // 12 if left else None

    def _months(self, allowed: KindMasks) -> int:
        """Bit n: month n, counted from January of year 0, is selected and has an allowed day."""
        if (found := self._some.get(allowed)) is None:
            every = _meeting(allowed.months(), _CYCLE_MONTHS, self.first, self.n)
            found = self._some[allowed] = every >> 12 << 12
        return found


def year_from(phase: Phase | None, year: int, allowed: KindMasks) -> int | None:
    """First year from this one on with a member; a phase of None selects every day."""
    if year > civil.MAX_YEAR:
        return None
    if phase is None:
        return first_of_cycle(allowed.years(), 400, year, civil.MAX_YEAR)
    return phase.year_from(year, allowed)


def year_to(phase: Phase | None, year: int, allowed: KindMasks) -> int | None:
    """Last year up to this one with a member."""
    if year < civil.MIN_YEAR:
        return None
    if phase is None:
        return last_of_cycle(allowed.years(), 400, year, civil.MIN_YEAR)
    return phase.year_to(year, allowed)

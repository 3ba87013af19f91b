"""Which years, months or weeks INTERVAL selects, counted from DTSTART; days and rarer things are in ``residues.py``.

A phase answers for a whole year at once (``mask``), and names by arithmetic the next year in which a selected day is also
an allowed one, so that neither a large INTERVAL nor one that never meets an allowed day costs a walk.
"""

from math import gcd

from lodger.engine.protocol import Protocol
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

    def on(self, day: int) -> bool:
        """Whether the day's year is selected."""
        return (civil.civil(day)[0] - self.first) % self.n == 0

    def mask(self, year: int) -> int:
        """All days or none."""
        return EVERY_DAY if (year - self.first) % self.n == 0 else 0

    def prepare(self, allowed: KindMasks) -> None:
        """Look at all kinds of year."""
        allowed.years()

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """Selected years are looked up among the 400 that have an allowed day; at most 400 before they repeat."""
        some = allowed.years()
        year += (self.first - year) % self.n
        for each in range(year, min(civil.MAX_YEAR + 1, year + self.years), self.n):
            if some >> each % 400 & 1:
                return each
        return None

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Like year_from, backwards."""
        some = allowed.years()
        year -= (year - self.first) % self.n
        for each in range(year, max(civil.MIN_YEAR - 1, year - self.years), -self.n):
            if some >> each % 400 & 1:
                return each
        return None


class WeekYears:
    """Every n-th week-numbering year; its days may lie in the calendar years beside it."""

    def __init__(self, interval: int, first: int, wkst: int) -> None:
        self.n, self.first, self.wkst = interval, first % interval, wkst
        self.years = 400 * interval // gcd(400, interval)
        self._some: tuple[KindMasks, int] | None = None

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
        some = self._week_years(allowed)
        begin = year - 1 + (self.first - (year - 1)) % self.n
        for each in range(begin, min(civil.MAX_YEAR + 2, begin + self.years + 1), self.n):
            if some >> each % 400 & 1:
                for there in range(max(year, each - 1), min(civil.MAX_YEAR, each + 1) + 1):
                    if self.mask(there) & allowed.mask(there):
                        return there
        return None

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Like year_from, backwards."""
        some = self._week_years(allowed)
        begin = year + 1 - (year + 1 - self.first) % self.n
        for each in range(begin, max(civil.MIN_YEAR - 2, begin - self.years - 1), -self.n):
            if some >> each % 400 & 1:
                for there in range(min(year, each + 1), max(civil.MIN_YEAR, each - 1) - 1, -1):
                    if self.mask(there) & allowed.mask(there):
                        return there
        return None

    def _week_years(self, allowed: KindMasks) -> int:
        """Bit n: a week-numbering year that is n modulo 400 has an allowed day."""
        if self._some is None or self._some[0] is not allowed:
            some = []
            for year in YEAR_OF:
                first, end, found = week_one(year, self.wkst), week_one(year + 1, self.wkst), False
                for each in (year - 1, year, year + 1):
                    start = civil.year_start(each)
                    found = found or bool(allowed.mask(each) & span(first - start, end - start))
                some.append(found)
            self._some = (allowed, sum(1 << n for n in range(400) if some[KIND_OF[n]]))
        return self._some[1]


class Months:
    """Every n-th calendar month; months are counted as year * 12 + month - 1."""

    def __init__(self, interval: int, first: int) -> None:
        self.n, self.first = interval, first % interval
        self.years = 400 * interval // gcd(_CYCLE_MONTHS, interval)

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
        """Look at all kinds of year."""
        allowed.months()

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """Year of the first selected month from January on that has an allowed day."""
        some, last = allowed.months(), civil.MAX_YEAR * 12 + 11
        month = year * 12 + (self.first - year * 12) % self.n
        if self.n > _CYCLE_MONTHS:
            for each in range(month, last + 1, self.n):
                if some >> each % _CYCLE_MONTHS & 1:
                    return each // 12
            return None
        end = min(last, year * 12 + 12 * self.years)
        while month <= end:
            place = month % _CYCLE_MONTHS
            found = stride(place, _CYCLE_MONTHS, self.n) & some
            if found:
                month += lowest(found) - place
                return month // 12 if month <= last else None
            month += _CYCLE_MONTHS - place
            month += (self.first - month) % self.n
        return None

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Like year_from, backwards."""
        some, first = allowed.months(), civil.MIN_YEAR * 12
        month = year * 12 + 11 - (year * 12 + 11 - self.first) % self.n
        if self.n > _CYCLE_MONTHS:
            for each in range(month, first - 1, -self.n):
                if some >> each % _CYCLE_MONTHS & 1:
                    return each // 12
            return None
        end = max(first, year * 12 - 12 * self.years)
        while month >= end:
            place = month % _CYCLE_MONTHS
            found = stride(place % self.n, place + 1, self.n) & some
            if found:
                month += highest(found) - place
                return month // 12 if month >= first else None
            month -= place + 1
            month -= (month - self.first) % self.n
        return None


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

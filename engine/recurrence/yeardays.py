"""The days that a rule names, one set per *kind* of year.

A rule without years names the same days of the year in every year of one kind, and there are 21 kinds: the
weekday of January 1 × (common, leap, common after a leap year). No kind stays away longer than 40 years
(over a century that is no leap year), so a search looks at no more than 41 years before it knows that there
is nothing: that is the bound of every question, impossible rules included. Years named in the rule (1900 to
2200) carry their own sets and are found by bisection. Where many sets are asked at once, all years that have a
member are one integer.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from datetime import date

from lodger.engine.recurrence.civil import (
    CYCLE_YEARS,
    EPOCH_ORDINAL,
    MAX_DAY,
    MAX_YEAR,
    MIN_DAY,
    MIN_YEAR,
    is_leap,
    weekday,
    year_start,
)
from lodger.engine.recurrence.dial import highest, lowest

LONGEST_WAIT_YEARS = 40


def _kind(year: int) -> int:
    return weekday(year_start(year)) * 4 + is_leap(year) * 2 + is_leap(year - 1)


#: Kind of a year by its place in the 400-year cycle: weekday of January 1 × 4 + leap × 2 + previous year
#: leap.
KINDS = tuple(_kind(CYCLE_YEARS + place) for place in range(CYCLE_YEARS))


def kind_of(year: int) -> int:
    """Kind of the year: weekday of January 1 (Monday 0) × 4 + leap × 2 + previous year leap."""
    return KINDS[year % CYCLE_YEARS]


class YearDays:
    """A set of days, asked for its members before and after a day.

    Args:
        build: gives the set for a kind of year; bit 0 is January 1. Called at most once for each of the 21
            kinds.
        named: sets of a contiguous stretch of years, in place of those of their kinds.
    """

    __slots__ = ("_build", "_by_kind", "_first_named", "_last_named", "_named", "_named_years", "_years")

    def __init__(self, build: Callable[[int], int], named: Mapping[int, int] | None = None) -> None:
        self._build = build
        self._by_kind: list[int] = [-1] * 28
        self._named = dict(named or {})
        self._named_years = [year for year in sorted(self._named) if self._named[year]]
        self._years: int | None = None
        self._first_named = min(self._named, default=MAX_YEAR + 1)
        self._last_named = max(self._named, default=MAX_YEAR + 1)

    @property
    def named_span(self) -> tuple[int, int] | None:
        """First and last year with a set of its own; None when all follow their kinds."""
        return (self._first_named, self._last_named) if self._named else None

    def of_year(self, year: int) -> int:
        """Set of the days of the year; bit 0 is January 1."""
        if year >= self._first_named and year in self._named:
            return self._named[year]
        return self.usual(year)

    def usual(self, year: int) -> int:
        """Set of the days of a year of this year's kind, as if it were not named."""
        kind = KINDS[year % CYCLE_YEARS]
        days = self._by_kind[kind]
        if days < 0:
            days = self._by_kind[kind] = self._build(kind)
        return days

    def warm(self) -> None:
        """Make the sets of all kinds of year now, and look for the years that have a member."""
        if self._years is not None:
            return
        found = sum(1 << year for year in range(CYCLE_YEARS) if self.usual(year))
        for have in range(5):  # 400 years, 800, up to 12 800
            found |= found << (CYCLE_YEARS << have)
        for year, days in self._named.items():
            found = found | 1 << year if days else found & ~(1 << year)
        self._years = found & (1 << MAX_YEAR + 1) - (1 << MIN_YEAR)

    def at_or_after(self, day: int) -> int | None:
        """First member at or after the day number; None up to the end of year 9999."""
        if day > MAX_DAY:
            return None
        day = max(day, MIN_DAY)
        year = date.fromordinal(day + EPOCH_ORDINAL).year
        left = self.of_year(year) >> day - year_start(year)
        if left:
            return day + lowest(left)
        found = self._year_from(year + 1)
        return None if found is None else year_start(found) + lowest(self.of_year(found))

    def at_or_before(self, day: int) -> int | None:
        """Last member at or before the day number; None back to year 1."""
        if day < MIN_DAY:
            return None
        day = min(day, MAX_DAY)
        year = date.fromordinal(day + EPOCH_ORDINAL).year
        left = self.of_year(year) & ((2 << day - year_start(year)) - 1)
        if left:
            return year_start(year) + highest(left)
        found = self._year_until(year - 1)
        return None if found is None else year_start(found) + highest(self.of_year(found))

    def _year_from(self, year: int) -> int | None:
        if self._years is not None:
            later = self._years >> year
            return year + lowest(later) if later else None
        if year < self._first_named:
            for candidate in range(year, min(year + LONGEST_WAIT_YEARS + 1, self._first_named, MAX_YEAR + 1)):
                if self.of_year(candidate):
                    return candidate
        if year <= self._last_named and self._named_years:
            place = bisect_left(self._named_years, year)
            if place < len(self._named_years):
                return self._named_years[place]
        if self._named:
            year = max(year, self._last_named + 1)
            for candidate in range(year, min(year + LONGEST_WAIT_YEARS + 1, MAX_YEAR + 1)):
                if self.of_year(candidate):
                    return candidate
        return None

    def _year_until(self, year: int) -> int | None:
        if self._years is not None:
            earlier = self._years & (2 << year) - 1
            return highest(earlier) if earlier else None
        if self._named and year > self._last_named:
            for candidate in range(year, max(year - LONGEST_WAIT_YEARS - 1, self._last_named), -1):
                if self.of_year(candidate):
                    return candidate
        if year >= self._first_named and self._named_years:
            place = bisect_right(self._named_years, year)
            if place:
                return self._named_years[place - 1]
        year = min(year, self._first_named - 1)
        for candidate in range(year, max(year - LONGEST_WAIT_YEARS - 1, MIN_YEAR - 1), -1):
            if self.of_year(candidate):
                return candidate
        return None

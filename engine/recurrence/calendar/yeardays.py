"""The days that a rule names, one set per *kind* of year.

The Gregorian calendar repeats after 400 years, and within them the days of a year are decided by the weekday of January 1 and
by which of the neighbouring years are leap years (weeks cross the year's edge). A set of days is computed once for each kind,
when it is first asked for; a search looks at one year per step.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import reduce
from operator import or_
from typing import Protocol

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.dial import lowest, members, stride
from lodger.engine.recurrence.search import Steps


def _kinds() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the kinds of years, by first weekday and leap day, and the kind of each year of a cycle."""
    seen: dict[tuple[int, ...], int] = {}
    kinds: list[int] = []
    years: list[int] = []
    for year in range(2000, 2000 + civil.CYCLE_YEARS):
        key = (civil.weekday(civil.year_start(year)), *(civil.is_leap(each) for each in range(year - 2, year + 3)))
        if key not in seen:
            seen[key] = len(years)
            years.append(year)
        kinds.append(seen[key])
    return tuple(kinds), tuple(years)


#: Kind of each year of the cycle (index: year modulo 400), and a year of each kind.
KIND_OF, YEAR_OF = _kinds()


_EVERY_SEVENTH = stride(0, 366, 7)


def on_weekdays(weekdays: int, first: int) -> int:
    """Return the days on these weekdays (bits, 0 for Monday) of a time that begins on a weekday, as bits of a year or more."""
    return reduce(or_, (_EVERY_SEVENTH << (each - first) % 7 for each in members(weekdays)), 0)


def numbered(numbers: Iterable[int], length: int) -> int:
    """Return the days with these numbers of a time of so many days, as bits: negative ones count from its end, others it may lack."""
    return reduce(or_, (1 << (n - 1 if n > 0 else length + n) for n in numbers if abs(n) <= length), 0)


def nth_of(days: int, number: int) -> int:
    """Return the n-th of some days, from 1, or from their end if negative, as a bit; 0 if there are not so many."""
    found = members(days)
    return 1 << found[number - 1 if number > 0 else number] if abs(number) <= len(found) else 0


class Selection(Protocol):
    """The days of every year that INTERVAL selects."""

    def of_year(self, year: int) -> int:
        """Set of the selected days; bit 0 is January 1."""


class YearDays:
    """A set of days, asked for its members after a day.

    Args:
        build: gives the set for a year, bit 0 is January 1; called once for a year of each kind.
        named: sets of some years, in place of those of their kinds.
        selection: only these days are members.
    """

    __slots__ = ("_build", "_by_kind", "_named", "_selection")

    def __init__(
        self, build: Callable[[int], int], named: Mapping[int, int] | None = None, selection: Selection | None = None
    ) -> None:
        self._build = build
        self._by_kind = [-1] * len(YEAR_OF)
        self._named = dict(named or {})
        self._selection = selection

    def of_year(self, year: int) -> int:
        """Set of the days of the year; bit 0 is January 1."""
        days = self.allowed(year)
        if self._selection is not None and days:
            days &= self._selection.of_year(year)
        return days

    def allowed(self, year: int) -> int:
        """Return the days of a year before INTERVAL selects among them; bit 0 is January 1."""
        return self._named[year] if year in self._named else self.usual(year)

    def usual(self, year: int) -> int:
        """Return the allowed days of a year by its kind alone, ignoring days that are named for that year."""
        kind = KIND_OF[year % civil.CYCLE_YEARS]
        days = self._by_kind[kind]
        if days < 0:
            days = self._by_kind[kind] = self._build(YEAR_OF[kind])
        return days

    def is_empty(self) -> bool:
        """Whether no day of any year is allowed; even if some is, INTERVAL may select none."""
        return not any(self._named.values()) and not self.repeats()

    def repeats(self) -> bool:
        """Whether the days by kind of year, without those of named years, have any member."""
        return any(self.usual(year) for year in YEAR_OF)

    def every_day(self) -> bool:
        """Whether each day of the calendar is a member."""
        if self._named or self._selection is not None:
            return False
        return all(self.usual(year).bit_count() == 365 + civil.is_leap(year) for year in YEAR_OF)

    def at_or_after(self, day: int, steps: Steps) -> int | None:
        """First member at or after the day number; None up to the end of year 9999."""
        if day > civil.MAX_DAY:
            return None
        day = max(day, civil.MIN_DAY)
        year = date.fromordinal(day + civil.EPOCH_ORDINAL).year
        left = self.of_year(year) >> day - civil.year_start(year)
        if left:
            return day + lowest(left)
        for each in range(year + 1, civil.MAX_YEAR + 1):
            days = self.of_year(each)
            if days:
                return civil.year_start(each) + lowest(days)
            steps.take(civil.year_start(each + 1) * civil.DAY_S)
        return None

"""The day-level expressions of one group as sets of days per year."""

from functools import partial, reduce
from operator import or_

from lodger.engine.recurrence.calendar.civil import DAYS_BEFORE_MONTH, days_in_year, is_leap, weekday, year_start
from lodger.engine.recurrence.calendar.yeardays import YearDays, on_weekdays
from lodger.engine.recurrence.schyntax.model import FIRST_YEAR, LAST_YEAR, Argument, Date, Unit
from lodger.engine.recurrence.schyntax.sets import FIRST_DAY, clock_set, counted_set, date_set, folded, full_date_set

_WHOLE_YEAR = (1 << 366) - 1
Arguments = dict[Unit, tuple[Argument, ...]]


def week_set(arguments: tuple[Argument, ...]) -> int:
    """Weekdays of a daysOfWeek unit; bit 0 is Monday."""
    bits = folded(arguments, lambda argument: clock_set(argument, Unit.DAYS_OF_WEEK), 0b11111110)
    return bits >> 2 | (bits >> 1 & 1) << 6


class GroupDays:
    """The days of a year that a group names, without dates that name their year."""

    def __init__(self, arguments: Arguments) -> None:
        self._week = week_set(arguments.get(Unit.DAYS_OF_WEEK, ()))
        self._month_days = arguments.get(Unit.DAYS_OF_MONTH)
        self._year_days = arguments.get(Unit.DAYS_OF_YEAR, ())
        dates = arguments.get(Unit.DATES, ())
        self._dates = [each for each in dates if not _is_full(each)]
        #: Whether only included dates are days of the group.
        self.names_dates = any(not each.excluded for each in dates)

    def others(self, year: int) -> int:
        """Days of a year by everything but the included dates; bit 0 is January 1."""
        leap, leap_before = is_leap(year), is_leap(year - 1)
        by_year = partial(counted_set, length=365 + leap, previous=365 + leap_before)
        days = folded(self._year_days, by_year, _WHOLE_YEAR << 1) >> 1
        days &= ~self._named(year, excluded=True) & ((1 << 365 + leap) - 1)
        if self._week != 0b1111111:
            days &= on_weekdays(self._week, weekday(year_start(year)))
        return days if self._month_days is None else days & self._by_month(self._month_days, leap)

    def _by_month(self, arguments: tuple[Argument, ...], leap: bool) -> int:
        """Days of a year whose number in the month the arguments name."""
        before = DAYS_BEFORE_MONTH[leap]
        found, previous = 0, 31
        for month in range(1, 13):
            length = before[month + 1] - before[month]
            by_month = partial(counted_set, length=length, previous=previous)
            found |= folded(arguments, by_month, (2 << length) - 2) >> 1 << before[month]
            previous = length
        return found

    def included(self, year: int) -> int:
        """Return the days of a year that dates without a year include."""
        return self._named(year, excluded=False)

    def _named(self, year: int, *, excluded: bool) -> int:
        """Return the days of a year that dates without a year include or exclude."""
        leaps = int(is_leap(year)), int(is_leap(year - 1))
        return reduce(or_, (date_set(each, *leaps) for each in self._dates if each.excluded is excluded), 0)

    def of_year(self, year: int) -> int:
        """Return the days of a year on which the group fires; bit 0 is January 1."""
        return self.others(year) & self.included(year) if self.names_dates else self.others(year)


def _is_full(argument: Argument) -> bool:
    """Whether an argument is a date with a year."""
    return isinstance(argument.span.start, Date) and argument.span.start.year is not None


def group_days(arguments: Arguments) -> YearDays:
    """Return the days on which a group fires."""
    days = GroupDays(arguments)
    full = [each for each in arguments.get(Unit.DATES, ()) if _is_full(each)]
    return YearDays(days.of_year, _of_named_years(days, full) if full else None)


def _of_named_years(days: GroupDays, full: list[Argument]) -> dict[int, int]:
    """Return the sets of days for the years that dates with years can name, by year."""
    included, excluded = (
        reduce(or_, (full_date_set(each) for each in full if each.excluded is kind), 0) for kind in (False, True)
    )
    others, plain = YearDays(days.others), YearDays(days.included)
    named = {}
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        found, offset = others.usual(year), year_start(year) - FIRST_DAY
        whole = (1 << days_in_year(year)) - 1
        if days.names_dates:
            found &= plain.usual(year) | included >> offset & whole
        named[year] = found & ~(excluded >> offset & whole)
    return named

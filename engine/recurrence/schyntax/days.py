"""The day-level expressions of one group as sets of days per year."""

from dataclasses import dataclass
from functools import partial

from lodger.engine.recurrence.calendar.civil import DAYS_BEFORE_MONTH, days_in_year, is_leap, weekday, year_start
from lodger.engine.recurrence.calendar.yeardays import YearDays, on_weekdays
from lodger.engine.recurrence.schyntax.model import FIRST_YEAR, LAST_YEAR, Argument, Date, Unit
from lodger.engine.recurrence.schyntax.sets import FIRST_DAY, clock_set, counted_set, date_set, folded, full_date_set

_WHOLE_YEAR = (1 << 366) - 1
#: Every month with the one before it: (length, length before).
_MONTH_PAIRS = ((31, 31), (28, 31), (29, 31), (31, 28), (31, 29), (30, 31), (31, 30))
#: Every year with the one before it: (leap, previous leap).
_YEAR_PAIRS = ((0, 0), (1, 0), (0, 1))
Arguments = dict[Unit, tuple[Argument, ...]]


def _is_full(argument: Argument) -> bool:
    """Whether an argument is a date with a year."""
    return isinstance(argument.span.start, Date) and argument.span.start.year is not None


def week_set(arguments: tuple[Argument, ...]) -> int:
    """Weekdays of a daysOfWeek unit; bit 0 is Monday."""
    bits = folded(arguments, lambda argument: clock_set(argument, Unit.DAYS_OF_WEEK), 0b11111110)
    return bits >> 2 | (bits >> 1 & 1) << 6


@dataclass(frozen=True, slots=True)
class GroupDays:
    """Folded once when the rule is read, so that a question only combines a few sets.

    Attributes:
        week: weekdays; bit 0 is Monday.
        months: days of the month by (length, length of the month before); None when the unit is not given.
        years: days of the year by (leap, previous leap): daysOfYear and dates without years, includes only
            of the dates.
        excluded: dates without years that are excluded, by (leap, previous leap).
        included: dates without years that are included; None when the group includes no date at all.
    """

    week: int
    months: dict[tuple[int, int], int] | None
    years: dict[tuple[int, int], int]
    included: dict[tuple[int, int], int] | None
    excluded: dict[tuple[int, int], int]

    def others(self, year: int) -> int:
        """Days of a year by everything but the included dates; bit 0 is January 1."""
        pair = leap, _ = _pair(year)
        days = self.years[pair] & ~self.excluded[pair] & ((1 << 365 + leap) - 1)
        if self.week != 0b1111111:
            days &= on_weekdays(self.week, weekday(year_start(year)))
        if self.months is not None:
            before = DAYS_BEFORE_MONTH[leap]
            by_month, previous = 0, 31
            for month in range(1, 13):
                length = before[month + 1] - before[month]
                by_month |= self.months[length, previous] >> 1 << before[month]
                previous = length
            days &= by_month
        return days

    def of_year(self, year: int) -> int:
        """Return the days of a year on which the group fires, without dates that name their year; bit 0 is January 1."""
        days = self.others(year)
        return days if self.included is None else days & self.included[_pair(year)]


def _pair(year: int) -> tuple[int, int]:
    """Whether a year and the one before it are leap years."""
    return int(is_leap(year)), int(is_leap(year - 1))


def _month_sets(arguments: tuple[Argument, ...]) -> dict[tuple[int, int], int]:
    """Return the days of the month that arguments mean, by (length of the month, length of the month before)."""
    return {
        pair: folded(arguments, partial(counted_set, length=pair[0], previous=pair[1]), (2 << pair[0]) - 2)
        for pair in _MONTH_PAIRS
    }


def _year_sets(arguments: tuple[Argument, ...]) -> dict[tuple[int, int], int]:
    """Return the days of the year that arguments mean, by (leap year, leap year before)."""
    sets = {}
    for leap, before in _YEAR_PAIRS:
        each = partial(counted_set, length=365 + leap, previous=365 + before)
        sets[leap, before] = folded(arguments, each, _WHOLE_YEAR << 1) >> 1
    return sets


def group_days(arguments: Arguments) -> YearDays:
    """Return the days on which a group fires."""
    dates = arguments.get(Unit.DATES, ())
    plain = [argument for argument in dates if not _is_full(argument)]
    full = [argument for argument in dates if _is_full(argument)]
    plain_included = [argument for argument in plain if not argument.excluded]
    month_days = arguments.get(Unit.DAYS_OF_MONTH)
    year_days = arguments.get(Unit.DAYS_OF_YEAR, ())

    def union_of_dates(chosen: list[Argument], pair: tuple[int, int]) -> int:
        """Return the days of a year that any of these dates includes, as bits."""
        found = 0
        for argument in chosen:
            found |= date_set(argument, *pair)
        return found

    any_included = any(not argument.excluded for argument in dates)
    days = GroupDays(
        week=week_set(arguments.get(Unit.DAYS_OF_WEEK, ())),
        months=None if month_days is None else _month_sets(month_days),
        years=_year_sets(year_days),
        included={pair: union_of_dates(plain_included, pair) for pair in _YEAR_PAIRS} if any_included else None,
        excluded={pair: union_of_dates([each for each in plain if each.excluded], pair) for pair in _YEAR_PAIRS},
    )
    return YearDays(days.of_year, _named(days, full) if full else None)


def _named(days: GroupDays, full: list[Argument]) -> dict[int, int]:
    """Return the sets of days for the years that dates with years name, by year."""
    included, excluded = 0, 0
    for argument in full:
        if argument.excluded:
            excluded |= full_date_set(argument)
        else:
            included |= full_date_set(argument)
    others = YearDays(days.others)
    named = {}
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        found = others.usual(year)
        offset = year_start(year) - FIRST_DAY
        whole = (1 << days_in_year(year)) - 1
        if days.included is not None:
            found &= days.included[_pair(year)] | included >> offset & whole
        named[year] = found & ~(excluded >> offset & whole)
    return named

"""Day of month with day of week: which days of which months a cron expression means."""

import calendar
from dataclasses import dataclass
from enum import StrEnum

from lodger.engine.recurrence.calendar.civil import DAYS_BEFORE_MONTH, is_leap, weekday, year_start
from lodger.engine.recurrence.calendar.dial import members
from lodger.engine.recurrence.calendar.yeardays import nth_of, on_weekdays

ALL_MONTHS = ((1 << 12) - 1) << 1
ALL_DAYS = ((1 << 31) - 1) << 1
ALL_WEEKDAYS = (1 << 7) - 1


class DayReading(StrEnum):
    """How day of month and day of week are combined when both are given."""

    DEBIAN = "debian"  # both must hold when either field begins with a star, else one is enough
    BOTH = "both"
    EITHER = "either"


@dataclass(frozen=True, slots=True)
class FromEnd:
    """``L`` (0), ``L-3`` (3), with ``W``: the weekday nearest to it."""

    before: int
    nearest_weekday: bool = False


@dataclass(frozen=True, slots=True)
class MonthDays:
    """The day-of-month field.

    Attributes:
        numbers: bits 1 to 31.
        from_end: days counted from the month's end.
        nearest: days for which the nearest Monday-to-Friday day is meant (``15W``).
        starred: the field begins with a star.
    """

    numbers: int
    from_end: tuple[FromEnd, ...] = ()
    nearest: tuple[int, ...] = ()
    starred: bool = False


@dataclass(frozen=True, slots=True)
class WeekDays:
    """The day-of-week field; weekday 0 is Monday.

    Attributes:
        weekly: bits 0 to 6.
        nth: weekday and which one of the month (``5#3``), -1 for the last one (``5L``).
        starred: the field begins with a star.
    """

    weekly: int
    nth: tuple[tuple[int, int], ...] = ()
    starred: bool = False


def nearest_weekday(day: int, length: int, first_weekday: int) -> int:
    """Monday-to-Friday day of the same month nearest to a day."""
    on = (first_weekday + day - 1) % 7
    if on == calendar.SATURDAY:
        return day - 1 if day > 1 else day + 2
    if on == calendar.SUNDAY:
        return day + 1 if day < length else day - 2
    return day


def in_month(days: MonthDays, length: int, first_weekday: int) -> int:
    """Set of day-of-month matches; bit 0 is the first of the month."""
    found = days.numbers >> 1
    for item in days.from_end:
        day = length - item.before
        if day >= 1:
            found |= 1 << (nearest_weekday(day, length, first_weekday) if item.nearest_weekday else day) - 1
    for day in days.nearest:
        if day <= length:
            found |= 1 << nearest_weekday(day, length, first_weekday) - 1
    return found & ((1 << length) - 1)


def in_weeks(days: WeekDays, length: int, first_weekday: int) -> int:
    """Set of day-of-week matches; bit 0 is the first of the month."""
    whole = (1 << length) - 1
    found = on_weekdays(days.weekly, first_weekday) & whole
    for each, which in days.nth:
        found |= nth_of(on_weekdays(1 << each, first_weekday) & whole, which)
    return found


@dataclass(frozen=True, slots=True)
class CronDays:
    """The three day-level fields and how they are read."""

    month_days: MonthDays
    months: int
    week_days: WeekDays
    reading: DayReading

    def both(self) -> bool:
        """Whether a day must match day of month *and* day of week."""
        if self.reading is DayReading.DEBIAN:
            return self.month_days.starred or self.week_days.starred
        return self.reading is DayReading.BOTH

    def of_year(self, year: int) -> int:
        """Set of the days of a year; bit 0 is January 1."""
        january, leap = weekday(year_start(year)), is_leap(year)
        before = DAYS_BEFORE_MONTH[leap]
        both = self.both()
        found = 0
        for month in members(self.months):
            length = before[month + 1] - before[month]
            first_weekday = (january + before[month]) % 7
            by_date = in_month(self.month_days, length, first_weekday)
            by_week = in_weeks(self.week_days, length, first_weekday)
            found |= (by_date & by_week if both else by_date | by_week) << before[month]
        return found

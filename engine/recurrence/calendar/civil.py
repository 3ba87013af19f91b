"""Integer arithmetic on the proleptic Gregorian calendar, years 1 to 9999; shared by every rule language.

A *day* is the number of days since 1970-01-01 (negative before); a *local second* the number of seconds since
1970-01-01T00:00:00 on the wall clock, without zone and without leap seconds. A weekday is 0 for Monday to 6 for Sunday.
"""

from datetime import UTC, date, datetime, timedelta

EPOCH_ORDINAL = 719_163  # date(1970, 1, 1).toordinal()
DAY_S = 86_400
MIN_YEAR = 1
MAX_YEAR = 9999
MIN_DAY = 1 - EPOCH_ORDINAL  # 0001-01-01
MAX_DAY = date.max.toordinal() - EPOCH_ORDINAL  # 9999-12-31
MIN_LOCAL = MIN_DAY * DAY_S
MAX_LOCAL = MAX_DAY * DAY_S + DAY_S - 1
CYCLE_YEARS = 400
CYCLE_DAYS = 146_097  # 20 871 weeks exactly: the calendar with its weekdays repeats

#: Days before each month (index 1 to 12; index 13 is the length of the year), common and leap years.
DAYS_BEFORE_MONTH = (
    (0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365),
    (0, 0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366),
)
_MONTH_DAYS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EPOCH_NAIVE = datetime(1970, 1, 1)  # noqa: DTZ001 - local time has no zone by definition
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)


def is_leap(year: int) -> bool:
    """Whether the year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    """Length of the month, 28 to 31."""
    return 29 if month == 2 and is_leap(year) else _MONTH_DAYS[month]


def days_in_year(year: int) -> int:
    """Return the number of days of a year."""
    return 366 if is_leap(year) else 365


def day_of(year: int, month: int, dom: int) -> int:
    """Day number of a date; ValueError when there is no such date in years 1 to 9999."""
    return date(year, month, dom).toordinal() - EPOCH_ORDINAL


def civil(day: int) -> tuple[int, int, int]:
    """Year, month and day of month of a day number; ValueError outside years 1 to 9999."""
    on = date.fromordinal(day + EPOCH_ORDINAL)
    return on.year, on.month, on.day


def year_start(year: int) -> int:
    """Day number of January 1; good for years 1 to 10000 (the first day that is out of range)."""
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400 + MIN_DAY


def weekday(day: int) -> int:
    """Return the weekday of a day number: 0 for Monday to 6 for Sunday."""
    return (day + 3) % 7


def local_at(year: int, month: int, dom: int, hour: int = 0, minute: int = 0, second: int = 0) -> int:
    """Local second of a wall-clock reading; ValueError when the date does not exist."""
    return day_of(year, month, dom) * DAY_S + hour * 3600 + minute * 60 + second


#: The anchor of rules without a start: midnight of a Monday that begins a month and a year.
UNANCHORED = local_at(1900, 1, 1)


def split(local: int) -> tuple[int, int]:
    """Day number and second of the day of a local second."""
    return divmod(local, DAY_S)


def clock(second_of_day: int) -> tuple[int, int, int]:
    """Hour, minute and second of a second of the day."""
    minutes, second = divmod(second_of_day, 60)
    hour, minute = divmod(minutes, 60)
    return hour, minute, second


def local_of(naive: datetime) -> int:
    """Local second of a naive datetime, rounded down."""
    return (naive.toordinal() - EPOCH_ORDINAL) * DAY_S + naive.hour * 3600 + naive.minute * 60 + naive.second


def naive_of(local: int) -> datetime:
    """Naive datetime of a local second; OverflowError outside years 1 to 9999."""
    return _EPOCH_NAIVE + timedelta(seconds=local)


def instant_of(utc_second: int) -> datetime:
    """Aware UTC datetime of seconds since 1970; OverflowError outside years 1 to 9999."""
    return _EPOCH_UTC + timedelta(seconds=utc_second)


def utc_floor(instant: datetime) -> tuple[int, bool]:
    """Whole UTC seconds since 1970 of an aware instant, and whether it had no fraction of a second."""
    if instant.tzinfo is not UTC:
        if instant.tzinfo is None:
            raise TypeError("a naive datetime is not an instant")
        instant = instant.astimezone(UTC)
    second = (instant.toordinal() - EPOCH_ORDINAL) * DAY_S
    second += instant.hour * 3600 + instant.minute * 60 + instant.second
    return second, instant.microsecond == 0

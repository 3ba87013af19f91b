"""The values of the arguments of one Schyntax expression, as sets (integers with bit *n* set for the value *n*).

An interval counts from the start of its range, and where a range wraps it goes on counting over the edge:
by the length of the unit, for days of the month and year by the length of the month or year before.
"""

from collections.abc import Callable, Iterable

from lodger.engine.recurrence.calendar.civil import DAYS_BEFORE_MONTH, day_of
from lodger.engine.recurrence.calendar.dial import stride
from lodger.engine.recurrence.schyntax.model import FIRST_YEAR, SPANS, Argument, Date, Unit

FIRST_DAY = day_of(FIRST_YEAR, 1, 1)


def folded(arguments: Iterable[Argument], each: Callable[[Argument], int], everything: int) -> int:
    """Return the union of the included arguments' sets (``everything`` without any) minus those of the excluded ones."""
    included, excluded, any_included = 0, 0, False
    for argument in arguments:
        if argument.excluded:
            excluded |= each(argument)
        else:
            included |= each(argument)
            any_included = True
    return (included if any_included else everything) & ~excluded


def _aligned(base: int, low: int, high: int, step: int) -> int:
    """Return the set of ..., base - step, base, base + step, ... from ``low`` to ``high``."""
    return stride(low + (base - low) % step, high + 1, step)


def clock_set(argument: Argument, unit: Unit) -> int:
    """Return the seconds, minutes, hours or days of the week (1 is Sunday) that an argument means, as a set."""
    low, high = SPANS[unit]
    step = argument.interval or 1
    start, end = argument.span.start, argument.span.end
    if start is None:
        return stride(low, high + 1, step)
    assert isinstance(start, int)
    if end is None:
        return stride(start, high + 1, step) if argument.interval else 1 << start
    assert isinstance(end, int)
    if end >= start:
        bits = stride(start, end + 1, step)
    else:
        size = high - low + 1
        bits = stride(start, high + 1, step) | _aligned(start - size, low, end, step)
    return bits & ~(1 << end) if argument.span.half_open else bits


def counted_set(argument: Argument, length: int, previous: int) -> int:
    """Days of a month or year of a length, after one of another length; bit 1 is the first day.

    A negative number counts from the end. A range wraps when its written start is above its end with the
    same sign, and from a negative to a positive number whenever the start comes later. A positive start
    with a negative end never
    wraps: ``20..-20`` holds nothing in a month where the 20th last day comes before the 20th.
    """
    step = argument.interval or 1
    start, end = argument.span.start, argument.span.end
    if start is None:
        return stride(1, length + 1, step)
    assert isinstance(start, int)
    first = start if start > 0 else length + start + 1
    if end is None:
        if argument.interval:
            return _aligned(first, max(first, 1), length, step)
        return 1 << first if 1 <= first <= length else 0
    assert isinstance(end, int)
    last = end if end > 0 else length + end + 1
    wraps = start > end if (start > 0) == (end > 0) else start < 0 and first > last
    if wraps:
        before = start - previous if start > 0 else start + 1
        bits = _aligned(first, max(first, 1), length, step) | _aligned(before, 1, min(last, length), step)
    else:
        bits = _aligned(first, max(first, 1), min(last, length), step)
    return bits & ~(1 << last) if argument.span.half_open and last > 0 else bits


def _place(date: Date, leap: int) -> tuple[int, bool]:
    """Return the 0-based day of the year of a date, and whether the date exists; a missing February 29 has March 1's."""
    return DAYS_BEFORE_MONTH[leap][date.month] + date.day - 1, bool(leap) or (date.month, date.day) != (2, 29)


def date_set(argument: Argument, leap: int, previous_leap: int) -> int:
    """Dates without years; bit 0 is January 1. Intervals from a missing February 29 count from the 28th."""
    step = argument.interval or 1
    start = argument.span.start or Date(None, 1, 1)
    end = argument.span.end
    assert isinstance(start, Date)
    if end is None:
        if not argument.interval and not argument.is_wildcard:
            place, exists = _place(start, leap)
            return 1 << place if exists else 0
        end = Date(None, 12, 31)
    assert isinstance(end, Date)
    first, first_exists = _place(start, leap)
    last, last_exists = _place(end, leap)
    last -= argument.span.half_open or not last_exists
    base = first - (not first_exists)
    if (start.month, start.day) <= (end.month, end.day):
        return _aligned(base, first, last, step)
    earlier, earlier_exists = _place(start, previous_leap)
    earlier_base = earlier - (not earlier_exists) - 365 - previous_leap
    return _aligned(base, first, 364 + leap, step) | _aligned(earlier_base, 0, last, step)


def full_date_set(argument: Argument) -> int:
    """Dates with years; bit 0 is January 1 of 1900. An interval without end runs to the end of its year."""
    start, end = argument.span.start, argument.span.end
    assert isinstance(start, Date)
    assert start.year is not None
    first = day_of(start.year, start.month, start.day) - FIRST_DAY
    if end is None:
        last = day_of(start.year, 12, 31) - FIRST_DAY if argument.interval else first
    else:
        assert isinstance(end, Date)
        assert end.year is not None
        last = day_of(end.year, end.month, end.day) - FIRST_DAY - argument.span.half_open
    return stride(first, last + 1, argument.interval or 1)

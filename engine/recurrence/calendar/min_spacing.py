"""Bounds of the distance between slots, from the times of day that a rule names and not from its days."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import gcd

from lodger.engine.recurrence.calendar.civil import DAY_S
from lodger.engine.recurrence.calendar.dial import Dial, Times, members
from lodger.engine.recurrence.duration import DAY_US, SECOND_US
from lodger.engine.recurrence.rule import WALL, Pace

#: Up to so many times of a day are listed.
_LISTED = 200
_NEVER = Pace(None, 0, DAY_US, (), WALL)


def of_day(times: Times) -> Pace:
    """Pace of the same times on every day of a wall clock."""
    return of_dial(times) if isinstance(times, Dial) else of_times(times.seconds)


def of_dial(dial: Dial) -> Pace:
    """Pace of a product of hours, minutes and seconds on every day of a wall clock."""
    if dial.is_empty():
        return _NEVER
    count = dial.count()
    gap = DAY_S + dial.first() - dial.last()
    width = 0  # from the first to the last member within the unit below
    for bits, unit in ((dial.seconds, 1), (dial.minutes, 60), (dial.hours, 3600)):
        values = members(bits)
        if len(values) > 1:
            gap = min(gap, min(b - a for a, b in pairwise(values)) * unit - width)
        width += (values[-1] - values[0]) * unit
    granule = gcd(
        DAY_S,
        *(3600 * hour for hour in members(dial.hours)),
        *(60 * minute for minute in members(dial.minutes)),
        *members(dial.seconds),
    )
    listed = tuple(dial.all()) if count <= _LISTED else None
    return Pace(gap * SECOND_US, count, granule * SECOND_US, listed, WALL)


def of_times(times: Sequence[int]) -> Pace:
    """Pace of ascending seconds of the day on every day of a wall clock."""
    gap = min([DAY_S + times[0] - times[-1], *(b - a for a, b in pairwise(times))])
    listed = tuple(times) if len(times) <= _LISTED else None
    return Pace(gap * SECOND_US, len(times), gcd(DAY_S, *times) * SECOND_US, listed, WALL)


def united(paces: Iterable[Pace]) -> Pace:
    """Pace of several rules: on one clock that never changes, of their times together."""
    some = [each for each in paces if each.max_per_day]
    if len(some) < 2:
        return some[0] if some else _NEVER
    per_day, granule = sum(each.max_per_day for each in some), gcd(*(each.granule_us for each in some))
    times, clock = {time for each in some for time in each.times or ()}, some[0].clock
    alike = clock is not None and all(each.clock == clock and each.times is not None for each in some)
    if not alike or len(times) > _LISTED:
        return Pace(granule, per_day, granule)
    listed = tuple(sorted(times))
    return Pace(of_times(listed).min_gap_us, per_day, granule, listed, clock)

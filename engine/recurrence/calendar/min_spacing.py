"""Bounds of the distance between members, from the times of day that a rule names and not from its days."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import gcd

from lodger.engine.recurrence.calendar.civil import DAY_S
from lodger.engine.recurrence.calendar.dial import Dial, Times, members
from lodger.engine.recurrence.rule import LocalPace, Pace

#: Up to so many times of a day are listed.
_LISTED = 200
_DAY_US = DAY_S * 1_000_000


def of_day(times: Times) -> LocalPace:
    """Pace of the same times on every day."""
    return of_dial(times) if isinstance(times, Dial) else of_times(times.seconds)


def of_dial(dial: Dial) -> LocalPace:
    """Pace of a product of hours, minutes and seconds on every day."""
    if dial.is_empty():
        return LocalPace(None, 0, 0, DAY_S, ())
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
    per_hour = dial.minutes.bit_count() * dial.seconds.bit_count()
    return LocalPace(gap, count, per_hour, granule, tuple(dial.all()) if count <= _LISTED else None)


def of_times(times: Sequence[int]) -> LocalPace:
    """Pace of ascending seconds of the day on every day."""
    gap = min([DAY_S + times[0] - times[-1], *(b - a for a, b in pairwise(times))])
    listed = tuple(times) if len(times) <= _LISTED else None
    return LocalPace(gap, len(times), min(len(times), 3600), gcd(DAY_S, *times), listed)


def together(paces: Iterable[LocalPace]) -> LocalPace:
    """Pace of several rules on one wall clock."""
    some = [each for each in paces if each.max_per_day]
    if len(some) < 2:
        return some[0] if some else LocalPace(None, 0, 0, DAY_S, ())
    granule = gcd(*(each.granule_s for each in some))
    listed = merged([each.times for each in some])
    gap = of_times(listed).min_gap_s if listed else granule
    per_hour = sum(each.max_per_hour for each in some)
    return LocalPace(gap, sum(each.max_per_day for each in some), per_hour, granule, listed)


def merged(times: Iterable[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    """Return the union of sets of seconds of the day, ascending; None if one is not listed or there are too many."""
    found: set[int] = set()
    for each in times:
        if each is None:
            return None
        found.update(each)
    return tuple(sorted(found)) if len(found) <= _LISTED else None


def of_schedule(paces: Sequence[Pace]) -> Pace:
    """Pace of several rules of a schedule."""
    if len(paces) == 1:
        return paces[0]
    per_day = sum(each.max_per_day for each in paces)
    granule = gcd(*(each.granule_us for each in paces))
    gaps = [each.min_gap_us for each in paces if each.min_gap_us is not None]
    clocks = {each.clock for each in paces}
    listed = merged([each.times for each in paces]) if len(clocks) == 1 and None not in clocks else None
    if listed:
        gap = (of_times(listed).min_gap_s or DAY_S) * 1_000_000
        return Pace(gap, per_day, granule, listed, paces[0].clock)
    return Pace(min([granule, *gaps]) if paces else None, per_day, granule)


def of_interval(period_us: int, anchor_us: int) -> Pace:
    """Return the pace of an interval that is counted from an anchor."""
    return Pace(period_us, -(-_DAY_US // period_us), gcd(period_us, anchor_us))

"""Schyntax read day by day, from the words of the spec: slow, without sets, sharing nothing with the engine.

A program is a list of groups, a group a list of (unit, arguments); an argument is (excluded, start, end,
half_open, interval) with None for the wildcard's start and for what is absent. Dates are (year or None,
month, day).
"""

from datetime import date, datetime, timedelta
from typing import Any

Argument = tuple[bool, Any, Any, bool, int | None]
Group = list[tuple[str, list[Argument]]]

SPANS = {"s": (0, 59), "m": (0, 59), "h": (0, 23), "dow": (1, 7)}


def text_of(groups: list[Group]) -> str:
    """Return groups as the text of a Schyntax schedule."""
    return " ".join(
        "{" + " ".join(f"{unit}({', '.join(map(argument_text, args))})" for unit, args in group) + "}"
        for group in groups
    )


def argument_text(argument: Argument) -> str:
    excluded, start, end, half_open, interval = argument

    def value(of: Any) -> str:
        return "/".join(str(part) for part in of if part is not None) if isinstance(of, tuple) else str(of)

    text = "!" * excluded + ("*" if start is None else value(start))
    if end is not None:
        text += ("..<" if half_open else "..") + value(end)
    return text + (f"%{interval}" if interval else "")


def _walk(value: int, start: int, end: int, low: int, high: int, step: int, half_open: bool) -> bool:
    """Whether stepping from start to end, over the edge of the unit, meets the value."""
    at, taken = start, 0
    while True:
        if at == value and taken % step == 0 and not (half_open and at == end):
            return True
        if at == end:
            return False
        at, taken = (low if at == high else at + 1), taken + 1


def clock_holds(unit: str, argument: Argument, value: int) -> bool:
    """Whether an argument of a unit of fixed length, such as minutes, includes a value."""
    _, start, end, half_open, interval = argument
    low, high = SPANS[unit]
    if start is None:
        start, end = low, high
    elif end is None:
        end = high if interval else start
    return _walk(value, start, end, low, high, interval or 1, half_open)


def counted_holds(argument: Argument, value: int, length: int, previous: int) -> bool:
    """Days of a month or year: a wrap began in the month or year before, so its start is counted there."""
    _, start, end, half_open, interval = argument
    step = interval or 1
    if start is None:
        start, end = 1, length
    elif end is None and interval:
        end = 366
    elif end is None:
        return value == (start if start > 0 else length + 1 + start)
    first = start if start > 0 else length + 1 + start
    last = end if end > 0 else length + 1 + end
    if half_open and value == last:
        return False
    wraps = (start > end and (start > 0) == (end > 0)) or (start < 0 < end and first > last)
    if value >= first and (wraps or value <= last) and (value - first) % step == 0:
        return True
    if not wraps or value > last:
        return False
    began = start if start > 0 else previous + 1 + start
    return (value + previous - began) % step == 0


def date_holds(argument: Argument, day: date) -> bool:
    """Whether an argument of ``dates`` includes a day."""
    _, start, end, half_open, interval = argument
    if start is None:
        start, end = (None, 1, 1), (None, 12, 31)
    elif end is None:
        if not interval:
            return (start[0] in (None, day.year)) and start[1:] == (day.month, day.day)
        end = (start[0], 12, 31)
    here = (day.month, day.day)
    if half_open and end[1:] == here and end[0] in (None, day.year):
        return False
    if start[0] is not None:
        if not date(*start) <= day <= date(*end):
            return False
        began = date(*start)
    else:
        wraps = start[1:] > end[1:]
        late, early = here >= start[1:], here <= end[1:]
        if not ((late or early) if wraps else (late and early)):
            return False
        began = _that_or_before(day.year if late else day.year - 1, start[1], start[2])
    return (day - began).days % (interval or 1) == 0


def _that_or_before(year: int, month: int, dom: int) -> date:
    """Return a date; of a day that its month does not have, the day before."""
    try:
        return date(year, month, dom)
    except ValueError:
        return date(year, month, dom - 1)


def _unit_holds(arguments: list[Argument], holds: Any) -> bool:
    """Whether the arguments of one unit include a value: one of the included, and none of the excluded ones."""
    included = [holds(argument) for argument in arguments if not argument[0]]
    return (any(included) if included else True) and not any(holds(argument) for argument in arguments if argument[0])


def day_holds(group: Group, day: date) -> bool:
    """Whether a group includes a day."""
    before = day.replace(day=1) - timedelta(days=1)
    length = ((day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)).day
    year_length = date(day.year, 12, 31).timetuple().tm_yday
    last_year_length = date(day.year - 1, 12, 31).timetuple().tm_yday
    for unit, arguments in group:
        if unit == "dow" and not _unit_holds(arguments, lambda a: clock_holds("dow", a, day.isoweekday() % 7 + 1)):
            return False
        if unit == "dom" and not _unit_holds(arguments, lambda a: counted_holds(a, day.day, length, before.day)):
            return False
        if unit == "doy" and not _unit_holds(
            arguments, lambda a: counted_holds(a, day.timetuple().tm_yday, year_length, last_year_length)
        ):
            return False
        if unit == "dates" and not _unit_holds(arguments, lambda a: date_holds(a, day)):
            return False
    return True


def times(group: Group) -> list[tuple[int, int, int]]:
    """Times of day of a group, ascending, with the spec's defaults for what is not given."""
    given = dict(group)
    sets = []
    finer_given = False
    for unit in ("s", "m", "h"):
        values = range(SPANS[unit][1] + 1)
        if unit in given:
            finer_given = True
            sets.append([v for v in values if _unit_holds(given[unit], lambda a, u=unit, v=v: clock_holds(u, a, v))])
        else:
            sets.append(list(values) if finer_given else [0])
    return [(h, m, s) for h in sets[2] for m in sets[1] for s in sets[0]]


def slots(groups: list[Group], first: date, days: int) -> list[datetime]:
    """Return the slots of groups on so many days."""
    found = set()
    for group in groups:
        of_day = times(group)
        for ahead in range(days):
            day = first + timedelta(days=ahead)
            if day_holds(group, day):
                found.update(datetime(day.year, day.month, day.day, *time) for time in of_day)
    return sorted(found)

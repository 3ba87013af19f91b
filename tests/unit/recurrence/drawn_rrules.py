"""RRULEs drawn at random, with the slots that python-dateutil finds."""

import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from dateutil import rrule as oracle

from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rrule import from_dateutil
from lodger.engine.recurrence.rule_errors import RuleInvalid

FIRST = datetime.min.replace(tzinfo=UTC)


LAST = datetime.max.replace(tzinfo=UTC)


YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY, SECONDLY = range(7)


DAY_PARTS = ("bymonth", "bymonthday", "byyearday", "byweekday")


def numbers(dice: Random, low: int, high: int, *, from_end: bool = False) -> list[int]:
    """Draw a few numbers of a range."""
    found = {dice.randint(low, high) for _ in range(dice.randint(1, 4))}
    return sorted(-n if from_end and dice.random() < 0.4 else n for n in found)


def rule_kwargs(dice: Random) -> dict[str, Any]:
    """Draw the arguments of a rule of dateutil."""
    freq = dice.randint(YEARLY, SECONDLY)
    kwargs: dict[str, Any] = {"freq": freq}
    maybe: dict[str, Callable[[], Any]] = {
        "interval": lambda: dice.choice([2, 3, 5, 7, 24, 90, dice.randint(1, 400)]),
        "wkst": lambda: dice.randint(0, 6),
        "bymonth": lambda: numbers(dice, 1, 12),
        "bymonthday": lambda: numbers(dice, 1, 31, from_end=True),
        "byyearday": lambda: numbers(dice, 1, 366, from_end=True),
        "byhour": lambda: numbers(dice, 0, 23),
        "byminute": lambda: numbers(dice, 0, 59),
        "bysecond": lambda: numbers(dice, 0, 59),
        "count": lambda: dice.randint(1, 30),
    }
    for name in dice.sample(sorted(maybe), dice.randint(0, 4)):
        kwargs[name] = maybe[name]()
    if dice.random() < 0.4:
        numbered = freq <= MONTHLY
        choices = [None, 1, 2, 5, -1, -2] if numbered else [None]
        pairs = {(dice.randint(0, 6), dice.choice(choices)) for _ in range(3)}
        if dice.random() < 0.9 and any(n for _, n in pairs):  # a mixed list may have no day at all
            pairs = {(day, n or 1) for day, n in pairs}
        kwargs["byweekday"] = [oracle.weekday(day, n) for day, n in sorted(pairs, key=str)]
    if any(name.startswith("by") for name in kwargs) and dice.random() < 0.3:
        kwargs["bysetpos"] = numbers(dice, 1, 4, from_end=True)
    start = datetime(1990, 1, 1) + timedelta(seconds=dice.randrange(40 * 365 * 86_400))
    if freq >= HOURLY:  # near a day that it allows, for dateutil takes every step on the way
        start = _allowed_day(kwargs, start) - timedelta(
            minutes=dice.choice([0, 1, 90, 3000]), seconds=dice.choice([0, 7])
        )
    kwargs["dtstart"] = start
    return kwargs


def _allowed_day(kwargs: dict[str, Any], start: datetime) -> datetime:
    """Return the first day from a start on that the day parts of a rule allow."""
    days = {name: kwargs[name] for name in DAY_PARTS if name in kwargs}
    if not days:
        return start
    try:
        rule = parse_rule(from_dateutil(oracle.rrule(DAILY, dtstart=start, wkst=kwargs.get("wkst"), **days)))
    except RuleInvalid:
        return start
    day = rule.next_after(start.replace(tzinfo=UTC))
    return day.replace(tzinfo=None) if isinstance(day, datetime) and day.year < 2200 else start


class Slow(Exception):
    """dateutil looks at every step up to year 9999 for a rule that hardly ever fires; up to here it has looked."""

    def __init__(self, looked_to: datetime | None) -> None:
        self.looked_to = looked_to


def _stop(_signal: int, frame: Any) -> None:
    """Read off where dateutil is: before the month in which it looks, everything has been looked at."""
    while frame is not None and frame.f_code.co_name != "_iter":
        frame = frame.f_back
    there = frame.f_locals if frame is not None else {}
    year, month = there.get("year", 0), there.get("month", 0)
    if not (1 < year <= 9999 and 1 <= month <= 12):
        raise Slow(None)
    raise Slow(datetime(year, month if there["freq"] > YEARLY else 1, 1) - timedelta(seconds=1))


def slots_of(kwargs: dict[str, Any], at_most: int = 40) -> tuple[Any, list[datetime], datetime | None] | None:
    """The oracle's object, its first slots, and up to when they are all (None: for ever); None when it cannot say."""
    before = signal.signal(signal.SIGALRM, _stop)
    try:
        return _slots_within_time(kwargs, at_most)
    except Slow:  # the clock rang when the walk was over already
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _slots_within_time(kwargs: dict[str, Any], at_most: int) -> tuple[Any, list[datetime], datetime | None] | None:
    """Return what :func:`slots_of` returns, from as many slots as dateutil finds within 50 ms."""
    slots: list[datetime] = []
    try:
        theirs = oracle.rrule(**kwargs)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        for slot in theirs:
            slots.append(slot)
            if len(slots) == at_most:
                return theirs, slots, slots[-1]
        return theirs, slots, None
    except Slow as slow:
        reached = max([*slots[-1:], *([slow.looked_to] if slow.looked_to is not None else [])], default=None)
        return (theirs, slots, reached) if reached is not None and reached > kwargs["dtstart"] else None
    except ValueError:  # dateutil refuses an INTERVAL that never meets the clock
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

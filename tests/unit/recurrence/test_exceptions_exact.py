"""RRULE minus EXRULE against days and steps gone through one by one: no slot lost, none too many, both ways."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.recurrence.local import next_local, previous_local
from tests.unit.recurrence.plain_rules import of_set
from tests.unit.recurrence.volume import examples

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.rrule import parse
from lodger.engine.recurrence.rrule.parser import parse_set
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.search import OutOfSteps, Steps

_EPOCH = date(1970, 1, 1)
_FREQS = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_STEPS = (2, 3, 4, 5, 6, 7, 12, 14, 24, 25, 30, 48, 60, 90, 365, 1439, 1440, 3601, 86_399, 86_400, 604_801)


def _some(dice: Random, low: int, high: int) -> str:
    if dice.random() < 0.6:
        found = {dice.randint(low, high) for _ in range(dice.randint(1, 3))}
    else:
        first = dice.randint(low, high)
        found = set(range(first, min(high, first + dice.randint(1, high)) + 1))
    return ",".join(map(str, sorted(found)))


def _rule(dice: Random) -> str:
    freq = dice.randrange(7)
    parts = [f"FREQ={_FREQS[freq]}"]
    if dice.random() < 0.5:
        parts.append(f"INTERVAL={dice.choice(_STEPS)}")
    spans = {"BYMONTH": (1, 12), "BYMONTHDAY": (1, 31), "BYHOUR": (0, 23), "BYMINUTE": (0, 59), "BYSECOND": (0, 59)}
    parts += [f"{name}={_some(dice, *spans[name])}" for name in dice.sample(sorted(spans), dice.randint(0, 3))]
    if dice.random() < 0.4:
        parts.append("BYDAY=" + ",".join(dice.sample(_DAYS, dice.randint(1, 5))))
    if any(part.startswith("BY") for part in parts) and dice.random() < 0.2:
        parts.append(f"BYSETPOS={dice.choice(('1', '-1', '1,2', '-1,2,5', '3'))}")
    return ";".join(parts)


def _related(dice: Random, rule: str) -> str:
    """Much of another rule: some parts dropped, one widened."""
    head, *rest = (part for part in rule.split(";") if not part.startswith("BYSETPOS"))
    rest = [part for part in rest if dice.random() < 0.7]
    if dice.random() < 0.3:
        head = f"FREQ={dice.choice(_FREQS)}"
    for name, low, high in (("BYHOUR", 0, 23), ("BYMONTH", 1, 12), ("BYSECOND", 0, 59)):
        if dice.random() < 0.3:
            rest = [*(part for part in rest if not part.startswith(f"{name}=")), f"{name}={_some(dice, low, high)}"]
    if dice.random() < 0.15:
        rest.append(f"UNTIL={dice.choice((2021, 2023))}0701T000000")
    elif dice.random() < 0.15:
        rest.append(f"COUNT={dice.choice((1, 20, 5000))}")
    return ";".join([head, *rest])


def _set(dice: Random) -> str:
    rules = [_rule(dice) for _ in range(dice.choice((1, 1, 1, 2)))]
    lines = [
        f"DTSTART:{dice.randint(1990, 2022)}{dice.randint(1, 12):02}{dice.randint(1, 28):02}T{dice.randint(0, 23):02}3000"
    ]
    lines += [f"RRULE:{each}" for each in rules]
    lines += [
        f"EXRULE:{_related(dice, dice.choice(rules)) if dice.random() < 0.75 else _rule(dice)}"
        for _ in range(dice.choice((1, 1, 2, 3)))
    ]
    return "\n".join(lines)


def _days(text: str) -> int:
    return 1 if "SECONDLY" in text else 8 if "MINUTELY" in text or "HOURLY" in text else 300


@settings(max_examples=examples(8), deadline=None)
@given(st.integers(0, 2**32))
def test_what_exceptions_leave_is_what_is_left(seed: int) -> None:
    dice = Random(seed)
    text = _set(dice)
    rules = parse_set(text)
    members = SetSequence(rules)
    for instant in (rules.start, dice.randrange(civil.local_at(2020, 1, 1), civil.local_at(2200, 1, 1))):
        try:
            members.next_from(instant, Steps(20_000))
        except OutOfSteps:
            continue  # hardly anything is left, if at all
        near = next_local(members, instant, inclusive=True)
        day = (instant if near is None or dice.random() < 0.3 else near) // civil.DAY_S
        first = _EPOCH + timedelta(days=day)
        expected = of_set_with_counts(text, first, first + timedelta(days=_days(text) - 1))
        begin, end = day * civil.DAY_S, (day + _days(text)) * civil.DAY_S
        try:
            found = list(_walked(members, begin, end, len(expected)))
            back = list(_walked(members, end - 1, begin, len(expected), back=True))
        except OutOfSteps:
            continue
        assert found == expected
        assert back[::-1] == expected


def _walked(members: SetSequence, at: int, end: int, limit: int, *, back: bool = False) -> Iterator[int]:
    """Members from a local second up to an end, or back to it, and at most one more than there should be."""
    for _ in range(limit + 1):
        found = members.last_to(at, Steps(20_000)) if back else members.next_from(at, Steps(20_000))
        if found is None or (found < end if back else found >= end):
            return
        yield found
        at = found - 1 if back else found + 1


def of_set_with_counts(text: str, first: date, last: date) -> list[int]:
    """The slow reading, with the end of each COUNT taken from the rule alone, which other tests hold to the walk."""
    rules = parse_set(text)
    entries = []
    for entry in rules.exrules:
        if entry.rule.count is not None:
            latest = previous_local(RuleSequence(entry.rule, entry.start, entry.until), civil.MAX_LOCAL, inclusive=True)
            entry = type(entry)(entry.rule, entry.start, entry.start - 1 if latest is None else latest)
        entries.append(entry)
    return of_set(type(rules)(rules.start, rules.zone, rules=rules.rules, exrules=tuple(entries)), first, last)


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        # BYSETPOS within a month against the same place by another road: the 3rd weekday of months is taken, not all.
        (
            (
                "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,3",
                "EXRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=3",
            ),
            1,
        ),
        (("RRULE:FREQ=DAILY;BYHOUR=9,18", "EXRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,18;BYSETPOS=-1"), 1),
        (("RRULE:FREQ=WEEKLY;BYDAY=MO,WE", "EXRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=WE"), 1),
        (("RRULE:FREQ=MINUTELY;INTERVAL=5", "EXRULE:FREQ=MINUTELY;INTERVAL=7", "EXRULE:FREQ=HOURLY;INTERVAL=3"), 1),
        (("RRULE:FREQ=HOURLY;INTERVAL=25", "EXRULE:FREQ=HOURLY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12"), 1),
    ],
)
def test_named_cases_by_the_slow_reading(lines: tuple[str, ...], first: int) -> None:
    text = "\n".join(["DTSTART:20260101T090000", *lines])
    begin = date(2026, 1, first)
    expected = of_set(parse_set(text), begin, begin + timedelta(days=400))
    slots = [civil.instant_of(local) for local in expected]
    assert list(parse(text).between(datetime(2026, 1, 1, tzinfo=UTC), slots[-1] + timedelta(seconds=1))) == slots


def test_a_lost_day_is_seen() -> None:
    """The comparison itself: with one exception left out it fails."""
    text = "DTSTART:20260101T090000\nRRULE:FREQ=DAILY\nEXRULE:FREQ=WEEKLY;BYDAY=SA,SU"
    whole = of_set(parse_set(text), date(2026, 1, 1), date(2026, 3, 1))
    bare = of_set(parse_set(text.rpartition("\n")[0]), date(2026, 1, 1), date(2026, 3, 1))
    assert len(whole) < len(bare)

"""python-dateutil as the oracle: random rules have its slots, forwards, backwards and from any instant."""

import json
from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from dateutil import rrule as oracle
from dateutil import tz as dateutil_tz
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.recurrence.drawn_rrules import (
    DAILY,
    FIRST,
    LAST,
    MONTHLY,
    WEEKLY,
    YEARLY,
    numbers,
    rule_kwargs,
    slots_of,
)

from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rrule import from_dateutil
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import OutOfSteps, SearchedTo

#: A rule is made from one number, so that a slow oracle cannot change what is drawn.
SEEDS = st.integers(0, 2**32)


@given(SEEDS)
def test_slots_are_dateutils(seed: int) -> None:
    dice = Random(seed)
    kwargs = rule_kwargs(dice)
    answer = slots_of(kwargs)
    if answer is None:
        return
    theirs, slots, until = answer
    try:
        rule = parse_rule(from_dateutil(theirs))
    except RuleInvalid:
        assert "bysetpos" in kwargs or kwargs.get("byweekday"), "only these can be refused of what is drawn"
        return
    expected = [slot.replace(tzinfo=UTC) for slot in slots]
    end = LAST if until is None else until.replace(tzinfo=UTC) + timedelta(seconds=1)
    found: list[datetime] = []
    try:
        found.extend(islice(rule.between(FIRST, end), len(expected) + 2))
    except OutOfSteps as out:  # the next slot is not before the instant that was reached
        if len(found) < len(expected) and out.reached <= expected[len(found)]:
            assert found == expected[: len(found)]
            return
    assert found == expected
    if not expected:
        assert until is not None or rule.never_reason()
        return
    for _ in range(3):
        seek = expected[0] + timedelta(seconds=dice.randint(0, int((slots[-1] - slots[0]).total_seconds())))
        after, before = bisect_right(expected, seek), bisect_left(expected, seek)
        if after < len(expected):
            later = rule.next_after(seek)
            searched = isinstance(later, SearchedTo) and seek < later.instant <= expected[after]
            assert searched or later == expected[after]
        earlier, wanted = rule.previous_before(seek), expected[before - 1] if before else None
        searched = isinstance(earlier, SearchedTo) and (wanted is None or wanted <= earlier.instant < seek)
        assert searched or earlier == wanted
        assert (rule.next_after(seek, inclusive=True) == seek) == (seek in expected)
        assert (rule.previous_before(seek, inclusive=True) == seek) == (seek in expected)


def taken_from(dice: Random, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a rule that takes slots of another one away."""
    changes: list[dict[str, Any]] = [{"interval": 2 * kwargs.get("interval", 1)}, {"byminute": numbers(dice, 0, 59)}]
    dropped = {"count", "bysetpos", dice.choice(["byhour", "bysecond", "bymonth"])}
    return {name: value for name, value in kwargs.items() if name not in dropped} | dice.choice(changes)


@given(SEEDS)
def test_sets_are_dateutils(seed: int) -> None:
    dice = Random(seed)
    one, two = rule_kwargs(dice), rule_kwargs(dice)
    exceptions = [taken_from(dice, one), dice.choice([taken_from(dice, two), rule_kwargs(dice)])]
    theirs = oracle.rruleset()
    expected: set[datetime] = set()
    until = datetime.max
    for kwargs in (one, two, *exceptions):
        if dice.random() < 0.7:
            kwargs["dtstart"] = one["dtstart"]
        answer = slots_of(kwargs)
        if answer is None:
            return
        made, slots, all_until = answer
        try:
            from_dateutil(made)
        except RuleInvalid:
            return
        if all_until is not None:
            until = min(until, all_until)
        if kwargs in exceptions:
            theirs.exrule(made)
            expected -= set(slots)
        else:
            theirs.rrule(made)
            expected |= set(slots)
    end = LAST if until == datetime.max else until.replace(tzinfo=UTC) + timedelta(seconds=1)
    rule, slots = (
        parse_rule(from_dateutil(theirs)),
        sorted(slot.replace(tzinfo=UTC) for slot in expected if slot <= until),
    )
    try:
        found = list(islice(rule.between(FIRST, end), 200))
    except OutOfSteps:
        return  # an EXRULE may remove slots one by one for centuries: such a set has no wrong answer, but none soon
    assert found == slots
    back = [rule.previous_before(slot) for slot in slots[1:]]
    assert all(isinstance(before, SearchedTo) or before == slot for before, slot in zip(back, slots, strict=False))


def test_a_week_of_an_object_is_a_whole_week() -> None:
    weeks = oracle.rrule(oracle.YEARLY, byweekno=20, count=3, dtstart=datetime(1997, 9, 2, 9))
    found = list(parse_rule(from_dateutil(weeks)).between(FIRST, datetime(2000, 1, 1, tzinfo=UTC)))
    assert [slot.replace(tzinfo=None) for slot in found] == list(weeks)


def test_rules_of_a_set_may_begin_at_different_times() -> None:
    theirs = oracle.rruleset()
    theirs.rrule(oracle.rrule(oracle.DAILY, count=5, dtstart=datetime(2026, 1, 1, 9)))
    theirs.rrule(oracle.rrule(oracle.DAILY, until=datetime(2026, 1, 9, 12), dtstart=datetime(2026, 1, 3, 12)))
    theirs.rdate(datetime(2026, 2, 1, 8))
    theirs.exrule(oracle.rrule(oracle.DAILY, interval=2, dtstart=datetime(2026, 1, 2, 9)))
    theirs.exdate(datetime(2026, 1, 5, 12))
    found = list(parse_rule(from_dateutil(theirs)).between(FIRST, LAST))
    assert [slot.replace(tzinfo=None) for slot in found] == list(theirs)


@pytest.mark.parametrize(
    "zone",
    [ZoneInfo("Europe/Berlin"), dateutil_tz.gettz("Europe/Berlin"), UTC, dateutil_tz.UTC, ZoneInfo("UTC")],
    ids=lambda zone: type(zone).__module__ + str(zone)[:12],
)
def test_objects_with_zones(zone: Any) -> None:
    start = datetime(2026, 3, 1, 9, tzinfo=zone)
    theirs = oracle.rrule(oracle.DAILY, dtstart=start, until=datetime(2026, 4, 30, 9, tzinfo=zone))
    found = list(parse_rule(from_dateutil(theirs)).between(FIRST, datetime(2027, 1, 1, tzinfo=UTC)))
    assert found == [slot.astimezone(UTC) for slot in theirs]


def test_specs_of_objects_are_json() -> None:
    spec = from_dateutil(oracle.rrule(oracle.DAILY, dtstart=datetime(2026, 1, 1)))
    assert json.loads(json.dumps(spec.text)) == spec.text


def set_of(*rules: Any, dates: tuple[datetime, ...] = ()) -> Any:
    made = oracle.rruleset()
    for rule in rules:
        made.rrule(rule)
    for date in dates:
        made.rdate(date)
    return made


NAIVE, BERLIN = datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))
DAYS = oracle.rrule(DAILY, dtstart=NAIVE)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (7, "cannot be a int"),
        (set_of(), "no rule and no date"),
        (set_of(set_of(DAYS)), "another set"),
        (set_of(DAYS, oracle.rrule(DAILY, dtstart=BERLIN)), "different zones"),
        (set_of(dates=(datetime(2026, 1, 1, 0, 0, 0, 5),)), "microseconds"),
        (oracle.rrule(DAILY, dtstart=datetime(2026, 1, 1, tzinfo=dateutil_tz.tzoffset("x", 3600))), "no IANA name"),
        (oracle.rrule(WEEKLY, byweekday=(0, 2), bysetpos=-1, dtstart=NAIVE), "middle of a week"),
        (oracle.rrule(MONTHLY, byweekday=(oracle.MO, oracle.TU(2)), dtstart=NAIVE), "with and without a number"),
    ],
)
def test_what_rfc_5545_cannot_say_is_refused(thing: object, words: str) -> None:
    with pytest.raises(RuleInvalid) as caught:
        from_dateutil(thing)
    assert caught.value.code == "dateutil_unreadable"
    assert words in caught.value.what
    assert caught.value.fix


@pytest.mark.parametrize(
    ("thing", "code"),
    [
        (oracle.rrule(YEARLY, byeaster=0, dtstart=NAIVE), "easter_unsupported"),
        (oracle.rrule(MONTHLY, bymonthday=32, dtstart=NAIVE), "number_out_of_range"),
    ],
)
def test_parts_that_the_rule_text_cannot_have_are_refused_by_name(thing: Any, code: str) -> None:
    with pytest.raises(RuleInvalid) as caught:
        parse_rule(from_dateutil(thing))
    assert caught.value.code == code


def test_a_rule_with_count_and_until_is_refused() -> None:
    with pytest.warns(DeprecationWarning, match="until"):
        both = oracle.rrule(DAILY, count=3, until=datetime(2026, 3, 1), dtstart=NAIVE)
    with pytest.raises(RuleInvalid, match="COUNT and UNTIL"):
        from_dateutil(both)

"""No rule, however hostile, makes a question expensive: the bounds are counted, not timed."""

from datetime import UTC, datetime

import pytest
from tests.unit.recurrence.local import next_local, previous_local

from lodger.engine.recurrence.calendar.civil import MAX_LOCAL, MIN_LOCAL, local_of, naive_of
from lodger.engine.recurrence.calendar.dial import Dial, members, stride
from lodger.engine.recurrence.calendar.yeardays import YearDays
from lodger.engine.recurrence.cron import parse as parse_cron
from lodger.engine.recurrence.schyntax import parse as parse_schyntax
from lodger.engine.recurrence.search import OutOfSteps, Steps

IMPOSSIBLE_CRON = [
    "0 0 30 2 *",
    "0 0 31 2,4,6,9,11 *",
    "* * * 31 4 *",
    "DAYS=both 0 0 1 * FRI#2",
    "0 0 31W 2 *",
    "DAYS=both 0 0 L * MON#1",
]
IMPOSSIBLE_SCHYNTAX = [
    "dom(20..-20)",
    "dates(2/1..2/28) dom(29..31)",
    "doy(366) dates(1/1)",
    "s(*) dates(2023/2/1..2023/2/28) dom(30)",
    "dates(1900/1/1..2200/12/31) dates(!1900/1/1..2200/12/31)",
    "h(!*%1) s(*)",
    " ".join("{dom(30) dates(2/1..2/29)}" for _ in range(64)),
    "dow(!*%1)",
]
RARE = [
    "0 0 29 2 */7",
    "dates(2/29) dow(sun)",
    "dates(2199/12/31)",
    "dates(1900/1/1,2200/12/31)",
    " ".join(f"{{dates(2/29) dow(mon) h({n % 24})}}" for n in range(64)),
]


def rule_of(text: str):
    return parse_schyntax(text) if "(" in text else parse_cron(text).rule


@pytest.mark.parametrize("place", [1, 1899, 1900, 2000, 2200, 2201, 9999])
def test_a_search_takes_a_step_for_each_year_and_stops(place: int) -> None:
    for named in (None, dict.fromkeys(range(1900, 2201), 0)):
        days = YearDays(lambda year: 0, named)
        at = local_of(datetime(place, 6, 1)) // 86_400
        steps, years = Steps(10_000), 9999 - place
        assert days.at_or_after(at, steps) is None
        assert 10_000 - steps.left == years
        if years > 100:
            with pytest.raises(OutOfSteps) as out:
                days.at_or_after(at, Steps(100))
            assert naive_of(out.value.reached).year == place + 102


@pytest.mark.parametrize("text", IMPOSSIBLE_CRON + IMPOSSIBLE_SCHYNTAX)
def test_impossible_rules_say_so(text: str) -> None:
    rule = rule_of(text)
    assert next_local(rule, MIN_LOCAL, inclusive=True) is None
    assert previous_local(rule, MAX_LOCAL, inclusive=True) is None
    assert rule.never_reason()


@pytest.mark.parametrize("text", RARE)
def test_rare_rules_are_found_from_both_ends(text: str) -> None:
    rule = rule_of(text)
    assert rule.never_reason() is None
    first = next_local(rule, MIN_LOCAL, inclusive=True)
    assert first is not None
    later = next_local(rule, first)
    if later is not None:
        assert previous_local(rule, later) == first


def test_a_dial_finds_every_neighbour() -> None:
    dial = Dial(0b1 << 23 | 0b101, 1 << 59 | 1, 1 << 59 | 1 << 30)
    slots = [
        h * 3600 + m * 60 + s for h in members(dial.hours) for m in members(dial.minutes) for s in members(dial.seconds)
    ]
    assert dial.count() == len(slots)
    assert (dial.first(), dial.last()) == (slots[0], slots[-1])
    for second in range(0, 86_400, 7):
        assert dial.at_or_after(second) == next((slot for slot in slots if slot >= second), None)


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("step", [1, 2, 7, 400])
def test_strides(first: int, step: int) -> None:
    for stop in range(120):
        assert members(stride(first, stop, step)) == list(range(first, stop, step))


def test_the_edges_of_the_calendar() -> None:
    rule = parse_cron("* * * * * *").rule
    assert next_local(rule, MAX_LOCAL) is None
    assert next_local(rule, MAX_LOCAL, inclusive=True) == MAX_LOCAL
    assert previous_local(rule, MIN_LOCAL) is None
    assert next_local(rule, MIN_LOCAL - 10**9) == MIN_LOCAL
    assert previous_local(rule, MAX_LOCAL, inclusive=True) == MAX_LOCAL
    assert next_local(rule, local_of(datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC).replace(tzinfo=None))) == 0

"""No rule, however hostile, makes a question expensive: the bounds are counted, not timed."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from tests.effort import least_cpu_s

from lodger.engine.recurrence.civil import MAX_LOCAL, MIN_LOCAL, local_of
from lodger.engine.recurrence.cron import parse as parse_cron
from lodger.engine.recurrence.dial import Dial, members, stride
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.schyntax import parse as parse_schyntax
from lodger.engine.recurrence.yeardays import KINDS, LONGEST_WAIT_YEARS, YearDays, kind_of

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


def test_no_kind_of_year_stays_away_longer_than_the_search_looks() -> None:
    assert len(set(KINDS)) == 21
    for kind in set(KINDS):
        # Twice the cycle: the wait over its edge counts too.
        years = [year for year in range(1, 802) if kind_of(year) == kind]
        assert max(later - earlier for earlier, later in pairwise(years)) <= LONGEST_WAIT_YEARS
    assert (
        max(
            later - earlier
            for kind in set(KINDS)
            for earlier, later in pairwise([y for y in range(1, 802) if kind_of(y) == kind])
        )
        == 40
    )


@pytest.mark.parametrize("place", [1, 1899, 1900, 2000, 2200, 2201, 9999])
def test_an_empty_set_is_given_up_after_a_lifetime_of_years(place: int) -> None:
    looked: list[int] = []

    class Counted(YearDays):
        def of_year(self, year: int) -> int:
            looked.append(year)
            return super().of_year(year)

    for named in (None, dict.fromkeys(range(1900, 2201), 0)):
        days = Counted(lambda kind: 0, named)
        at = local_of(datetime(place, 6, 1)) // 86_400
        looked.clear()
        assert days.at_or_after(at) is None
        assert days.at_or_before(at) is None
        assert len(looked) <= 4 * (LONGEST_WAIT_YEARS + 2)


@pytest.mark.parametrize("text", IMPOSSIBLE_CRON + IMPOSSIBLE_SCHYNTAX)
def test_impossible_rules_say_so(text: str) -> None:
    rule = rule_of(text)
    assert rule.next_local(MIN_LOCAL, inclusive=True) is None
    assert rule.previous_local(MAX_LOCAL, inclusive=True) is None
    assert rule.never_reason()


@pytest.mark.parametrize("text", RARE)
def test_rare_rules_are_found_from_both_ends(text: str) -> None:
    rule = rule_of(text)
    assert rule.never_reason() is None
    first = rule.next_local(MIN_LOCAL, inclusive=True)
    assert first is not None
    later = rule.next_local(first)
    if later is not None:
        assert rule.previous_local(later) == first


@pytest.mark.parametrize("text", IMPOSSIBLE_CRON + IMPOSSIBLE_SCHYNTAX + RARE)
def test_no_question_is_slow(text: str) -> None:
    """Gross: 20 times the promise of a millisecond, the first question after parsing included."""

    def asked(rule, at: int) -> None:
        rule.next_local(at)
        rule.previous_local(at)

    for at in (
        MIN_LOCAL,
        local_of(datetime(1899, 12, 31)),
        local_of(datetime(2026, 1, 1)),
        local_of(datetime(2201, 1, 1)),
    ):
        rules = [rule_of(text) for _ in range(3)]
        assert least_cpu_s(lambda rules=rules, at=at: asked(rules.pop(), at)) < 0.02


def test_the_longest_texts_are_read_soon() -> None:
    for text in (
        "dom(" + " ".join(f"{n % 31 + 1}..{n % 7 - 8}%{n % 30 + 1}" for n in range(300)) + ")",
        "dates(" + " ".join(f"19{n % 100:02d}/1/1..2200/12/{n % 31 + 1}%{n + 1}" for n in range(150)) + ")",
        " ".join(f"{{dates(!20{n:02d}/1/1..2100/1/1)h({n % 24})}}" for n in range(64)),
    ):
        assert least_cpu_s(lambda text=text: parse_schyntax(text).text()) < 1
    with pytest.raises(RuleInvalid, match="more than 64 groups"):
        parse_schyntax("{h(1)}" * 65)


def test_a_dial_finds_every_neighbour() -> None:
    dial = Dial(0b1 << 23 | 0b101, 1 << 59 | 1, 1 << 59 | 1 << 30)
    slots = [
        h * 3600 + m * 60 + s for h in members(dial.hours) for m in members(dial.minutes) for s in members(dial.seconds)
    ]
    assert dial.count() == len(slots)
    assert (dial.first(), dial.last()) == (slots[0], slots[-1])
    for second in range(0, 86_400, 7):
        assert dial.at_or_after(second) == next((slot for slot in slots if slot >= second), None)
        assert dial.at_or_before(second) == next((slot for slot in reversed(slots) if slot <= second), None)


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("step", [1, 2, 7, 400])
def test_strides(first: int, step: int) -> None:
    for stop in range(120):
        assert members(stride(first, stop, step)) == list(range(first, stop, step))


def test_the_edges_of_the_calendar() -> None:
    rule = parse_cron("* * * * * *").rule
    assert rule.next_local(MAX_LOCAL) is None
    assert rule.next_local(MAX_LOCAL, inclusive=True) == MAX_LOCAL
    assert rule.previous_local(MIN_LOCAL) is None
    assert rule.next_local(MIN_LOCAL - 10**9) == MIN_LOCAL
    assert rule.previous_local(MAX_LOCAL + 10**9) == MAX_LOCAL
    assert rule.next_local(local_of(datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC).replace(tzinfo=None))) == 0

"""Exclusions and exceptions are searched with a step counter: never wrong, never long, and always ahead of time."""

import sys
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.recurrence.brute import Brute
from tests.unit.recurrence.hostile_schedules import HOSTILE, everyday, schedule
from tests.unit.recurrence.volume import examples

from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.rule import DstPolicy, Gap, Kind, RuleSpec, ScheduleRules
from lodger.engine.recurrence.rule_errors import RuleInvalid, RuleNeverFires
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.recurrence.search import MAX_STEPS, OutOfSteps, SearchedTo, Steps

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
#: Python calls for which a step may stand at most.
_CALLS_A_STEP = 100


def made(rule: str, *without: str, tz: str | None = "Europe/Berlin") -> CompiledSchedule:
    return compile_schedule(ScheduleRules((RuleSpec(rule),), tuple(RuleSpec(text) for text in without), tz=tz))


@pytest.mark.parametrize("seed", range(examples(30)))
def test_everyday_schedules_are_taken_and_right(seed: int) -> None:
    """Cron minus two or three of nights, lunch, weekends, Christmas, a summer, a freeze, every third week, maintenance."""
    dice = Random(seed)
    rules = everyday(dice)
    compiled = compile_schedule(rules)
    begin = NOW + timedelta(days=dice.randrange(800))
    first = compiled.first_slot(begin)
    assert isinstance(first, datetime)
    assert compiled.next_after(begin, inclusive=True) == first, "a question is enough"
    brute = Brute(rules, begin, first + timedelta(days=2))
    assert list(compiled.between(begin, first + timedelta(days=2))) == brute.slots
    back, slot = [], compiled.previous_before(first + timedelta(days=2))
    while isinstance(slot, datetime) and slot >= begin:
        back.append(slot)
        slot = compiled.previous_before(slot)
    assert back[::-1] == brute.slots


def calls_made(ask: object, *arguments: object) -> int:
    """Python calls that a question makes."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        ask(*arguments)  # type: ignore[operator]  # a bound method
    finally:
        sys.setprofile(None)
    return calls


def bounded(compiled: CompiledSchedule, instant: datetime) -> None:
    steps, reached = Steps(), None
    try:
        compiled.next_from(instant, steps)
    except OutOfSteps as out:
        reached = out.reached
    assert reached is None or reached > instant
    assert steps.left >= -1, f"at most {MAX_STEPS} steps"
    before = compiled.previous_before(instant)
    assert not isinstance(before, SearchedTo) or before.instant <= instant
    for ask in (compiled.next_after, compiled.previous_before):
        assert calls_made(ask, instant) < MAX_STEPS * _CALLS_A_STEP


class Removed(Every):
    """Slots that many exclusions remove: each question takes a thousand steps, and ends a millisecond later."""

    taken = 0

    def next_from(self, instant: datetime, steps: Steps) -> datetime | None:
        Removed.taken += 1000
        steps.left -= 1000
        raise OutOfSteps(instant + timedelta(milliseconds=1))


def test_steps_that_a_question_takes_beyond_its_share_count_in_a_search_backwards() -> None:
    Removed.taken = 0
    assert isinstance(Removed(1_000_000).previous_before(NOW), SearchedTo)
    assert Removed.taken <= MAX_STEPS + 1000


@settings(max_examples=examples(40), deadline=None, derandomize=examples(1) == 1)
@given(st.integers(0, 2**40))
def test_no_question_takes_more_than_its_steps(seed: int) -> None:
    dice = Random(seed)
    try:
        compiled = compile_schedule(schedule(dice), now=NOW)
    except RuleInvalid:
        return
    bounded(compiled, NOW + timedelta(days=dice.randint(-400_000, 2_000_000)))


ALL_CLOSED = "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY"


@pytest.mark.parametrize("text", [*HOSTILE, ALL_CLOSED], ids=lambda text: text.replace("\n", " ")[-60:])
def test_hostile_rules_are_bounded(text: str) -> None:
    compiled = made(text, tz="UTC")
    for instant in (NOW, datetime(2400, 2, 28, tzinfo=UTC)):
        bounded(compiled, instant)


@pytest.mark.parametrize(
    ("rule", "without"),
    [
        ("* * * * * *", ("* * 0-8 * * *",)),
        ("DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY;BYHOUR=0,1,2", ()),
        ("FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3;BYMINUTE=4;BYSECOND=5", ()),
        ("every 1s", ("* * 0-5 22 11 *",)),
    ],
)
def test_a_search_that_goes_on_finds_what_one_long_search_finds(rule: str, without: tuple[str, ...]) -> None:
    compiled = made(rule, *without, tz="UTC")
    begin = datetime(2026, 11, 22, tzinfo=UTC)
    whole = compiled.next_after(begin, limit=10**7)
    assert isinstance(whole, datetime)
    at, found, questions = begin, compiled.next_after(begin), 1
    while isinstance(found, SearchedTo):
        assert found.instant >= at + timedelta(seconds=MAX_STEPS // 3), "time does not catch up with the search"
        at = found.instant
        found = compiled.next_after(at, inclusive=True)
        questions += 1
    assert (found, questions > 1) == (whole, True)
    before = compiled.previous_before(whole)
    while isinstance(before, SearchedTo):
        before = compiled.previous_before(before.instant, inclusive=True)
    assert before == compiled.previous_before(whole, limit=10**7)


def test_a_schedule_without_slots_for_years_is_refused_with_what_closed_most() -> None:
    lunch = "DTSTART:20200101T120000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY"
    days = "DTSTART;VALUE=DATE:20200101\nRRULE:FREQ=DAILY"
    with pytest.raises(RuleNeverFires) as caught:
        made("0 9,12 * * *", lunch, days, tz="UTC").first_slot(NOW)
    assert caught.value.code == "rule_never_fires"
    assert "no slot in the next" in caught.value.what
    assert "exclusion 2 (the whole day: Every day" in caught.value.why


def test_what_cannot_be_told_is_accepted_and_said() -> None:
    found = made(ALL_CLOSED, tz="UTC").first_slot(NOW)
    assert isinstance(found, SearchedTo)
    assert NOW < found.instant < NOW + timedelta(days=1)


def test_one_rule_without_slots_does_not_hold_up_another() -> None:
    never = "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3;BYMINUTE=4;BYSECOND=5"
    rules = ScheduleRules(tuple(RuleSpec(text) for text in (never, never.replace("MINUTE=4", "MINUTE=9"), "0 9 * * *")))
    assert compile_schedule(rules).next_after(NOW) == datetime(2026, 11, 22, 9, tzinfo=UTC)
    groups = ScheduleRules((RuleSpec("{dates(2/29) dow(mon)} {doy(366) dow(sun)} {h(9)}", Kind.SCHYNTAX),))
    assert compile_schedule(groups).next_after(NOW) == datetime(2026, 11, 22, 9, tzinfo=UTC)


@pytest.mark.parametrize(("length", "end"), [("P2D", 22), ("P1W", 22), ("PT48H", 23)])
def test_days_and_weeks_of_a_window_are_those_of_the_calendar(length: str, end: int) -> None:
    """A weekend from Saturday to Monday midnight lasts 47 hours when the clocks go forward, an exact PT48H an hour longer."""
    begins = "20270327T000000" if length != "P1W" else "20270322T000000"
    weekend = f"DTSTART;TZID=Europe/Berlin:{begins}\nDURATION:{length}\nRRULE:FREQ=YEARLY"
    compiled = made("0 * * * *", weekend)
    assert compiled.next_after(datetime(2027, 3, 27, 12, tzinfo=UTC)) == datetime(2027, 3, 28, end, tzinfo=UTC)


@pytest.mark.parametrize("gap", [None, *Gap])
def test_a_day_without_midnight_is_excluded_under_every_policy(gap: Gap | None) -> None:
    """In Cairo the clocks go from 00:00 to 01:00 on 27 April 2029."""
    day = "DTSTART;VALUE=DATE:20290427"
    rules = ScheduleRules((RuleSpec("0 * * * *"),), (RuleSpec(day),), tz="Africa/Cairo", dst=DstPolicy(gap=gap))
    compiled = compile_schedule(rules)
    assert compiled.next_after(datetime(2029, 4, 26, 21, 0, tzinfo=UTC)) == datetime(2029, 4, 27, 21, tzinfo=UTC)
    assert compiled.previous_before(datetime(2029, 4, 27, 21, tzinfo=UTC)) == datetime(2029, 4, 26, 21, tzinfo=UTC)
    assert "skipped by DST" not in compiled.text().partition("but never")[2]


def test_an_instant_is_open_or_closed() -> None:
    night = "DTSTART:20200101T220000\nDURATION:PT8H\nRRULE:FREQ=DAILY"
    rules = ScheduleRules(
        (RuleSpec("on changes of orders"),), (RuleSpec(night), RuleSpec("0 12 * * *")), start=NOW - timedelta(days=1)
    )
    compiled = compile_schedule(rules)
    assert compiled.is_open(NOW + timedelta(seconds=1))
    assert not compiled.is_open(NOW), "excluded instant"
    assert not compiled.is_open(datetime(2026, 11, 21, 23, tzinfo=UTC)), "inside a window"
    assert not compiled.is_open(NOW - timedelta(days=1, seconds=1)), "before its start"
    assert isinstance(compiled.first_slot(NOW), datetime), (
        "windows over the last instant of the calendar change nothing"
    )


def test_an_exclusion_of_many_rules_closes_what_each_of_them_names() -> None:
    lines = "\n".join(f"RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR={n}" for n in range(15))
    many = f"DTSTART:20200101T000000\n{lines}\nRRULE:FREQ=DAILY;BYHOUR=9"
    assert made("0 9,10 * * *", many, tz="UTC").next_after(NOW) == datetime(2026, 11, 22, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("exclusion", "days", "words"),
    [
        ("every weekend", 2, "Every Saturday and Sunday"),
        ("on 28-29 November 2026", 2, "On November 28, 2026 and on November 29, 2026"),
        ("2026-11-28", 1, "On November 28, 2026"),
        ("at 2026-11-28", 1, "On November 28, 2026"),
        ("every 7 days", 1, "Every 7 days, counted from Saturday, November 28, 2026"),
        ("P7D", 1, "Every 7 days, counted from Saturday, November 28, 2026"),
        ("FREQ=WEEKLY;BYDAY=SA,SU", 2, "Every week on Saturday and Sunday"),
        ("days(sat..sun)", 2, "on Saturday and Sunday"),
        ("{days(sat)} {dates(11/29)}", 2, "on Saturday; and on November 29"),
    ],
)
@pytest.mark.parametrize(("tz", "close"), [("UTC", 0), ("Asia/Kathmandu", -345)])
def test_an_exclusion_without_a_time_of_day_closes_whole_days_of_its_zone(
    exclusion: str, days: int, words: str, tz: str, close: int
) -> None:
    excluded = RuleSpec(exclusion, counted_from="2026-11-28T09:00" if "7" in exclusion else None)
    compiled = compile_schedule(ScheduleRules((RuleSpec("PT15M"),), (excluded,), tz=tz))
    begin = datetime(2026, 11, 28, tzinfo=UTC) + timedelta(minutes=close)
    assert compiled.next_after(begin, inclusive=True) == begin + timedelta(days=days)
    assert compiled.previous_before(begin) == begin - timedelta(minutes=15)
    assert compiled.text().endswith(f"but never the whole day: {words} ({tz})")


def test_an_exclusion_with_times_of_day_closes_these_and_says_when_none_is_a_slot() -> None:
    nine = "FREQ=WEEKLY;BYDAY=SA,SU;BYHOUR=9"
    for exclusion in ("weekends at 9", "0 9 * * 6,0", nine, "2026-11-21T09:00", "every hour on weekends"):
        assert made("0,30 9 * * *", exclusion).next_after(NOW - timedelta(hours=4)) == NOW.replace(hour=8, minute=30)
        assert "closes none" not in made("0 9 * * *", exclusion).text()
        assert made("30 9 * * *", exclusion).text().endswith("(Europe/Berlin), which closes none of its slots")
    for rule, exclusion in (("every hour", nine), ("30 2 * * *", "30 3 * * *"), ("0 9 * * *", "weekends at 10 (UTC)")):
        assert "closes none" not in made(rule, exclusion).text(), "they may meet"


@pytest.mark.parametrize(
    ("exclusion", "code"), [("{days(sat)} {h(9)}", "exclusion_mixed"), ("on changes of orders", "changes_excluded")]
)
def test_an_exclusion_that_is_not_understood_is_refused(exclusion: str, code: str) -> None:
    with pytest.raises(RuleInvalid) as caught:
        made("0 9 * * *", exclusion)
    assert caught.value.code == code

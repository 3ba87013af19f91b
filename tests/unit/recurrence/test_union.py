"""Whole schedules: union, bounds, density, reasons and sentences."""

from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.recurrence.volume import examples

from lodger.engine.recurrence.compile import MAX_RULES, compile_schedule
from lodger.engine.recurrence.difference import difference
from lodger.engine.recurrence.rule import DstPolicy, Gap, Kind, Recurrence, RuleSpec, ScheduleRules
from lodger.engine.recurrence.rule_errors import RuleInvalid, RuleNeverFires

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
NOV = datetime(2026, 11, 20, tzinfo=UTC)


def schedule(*texts: str, without: tuple[str, ...] = (), **options: object) -> ScheduleRules:
    rules = tuple(RuleSpec(text) for text in texts)
    return ScheduleRules(rules, tuple(RuleSpec(text) for text in without), **options)


RULES = [
    "FREQ=HOURLY;INTERVAL=5",
    "FREQ=DAILY;BYHOUR=9,17",
    "FREQ=WEEKLY;BYDAY=SA,SU;BYHOUR=12",
    "0 */6 * * 1-5",
    "min(*%20) hours(3)",
    "every 7h",
    "at 2026-11-21T09:00",
]


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 2**32))
def test_union_is_merge(seed: int) -> None:
    dice = Random(seed)
    texts = dice.sample(RULES, dice.randint(1, 4))
    start = NOV + timedelta(hours=dice.randint(0, 50)) if dice.random() < 0.4 else None
    end = NOV + timedelta(hours=dice.randint(100, 250)) if dice.random() < 0.4 else None
    tz = dice.choice([None, "Europe/Berlin", "America/New_York"])
    union = compile_schedule(schedule(*texts, tz=tz, start=start, end=end))
    if union.never_reason():
        assert end or start
    until = NOV + timedelta(days=14)
    expected = {slot for rule in union.rules for slot in rule.between(NOV, until)}
    expected = {slot for slot in expected if (start is None or slot >= start) and (end is None or slot < end)}
    assert list(union.between(NOV, until)) == sorted(expected)
    back, slot = [], union.previous_before(until)
    while slot is not None and slot >= NOV:
        back.append(slot)
        slot = union.previous_before(slot) if len(back) < len(expected) else None
    assert back[::-1] == sorted(expected)
    assert isinstance(union, Recurrence)


def test_bounds_hold_in_both_directions() -> None:
    """The start is a slot that may be, the end is none, from whichever side they are asked for."""
    hour, start, end = timedelta(hours=1), NOV, NOV + timedelta(days=1)
    union = compile_schedule(schedule("every 1h", start=start, end=end))
    for after in (start - 9 * hour, start - hour):
        assert union.next_after(after) == union.next_after(start, inclusive=True) == start
    for before in (end + timedelta(microseconds=1), end + 9 * hour):
        assert union.previous_before(before) == union.previous_before(end, inclusive=True) == end - hour
    assert union.next_after(end - hour) is union.next_after(end, inclusive=True) is None
    assert union.previous_before(start) is union.previous_before(start - hour, inclusive=True) is None
    assert union.ends()


def test_holidays_are_whole_local_days() -> None:
    rules = schedule("FREQ=HOURLY", without=("DTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY",), tz="America/New_York")
    union = compile_schedule(rules)
    before = datetime(2026, 12, 25, 4, 30, tzinfo=UTC)
    assert union.next_after(before) == datetime(2026, 12, 26, 5, tzinfo=UTC)
    assert union.previous_before(datetime(2026, 12, 26, 5, tzinfo=UTC)) == datetime(2026, 12, 25, 4, tzinfo=UTC)


def test_a_night_of_blackout_over_a_change_of_clocks() -> None:
    rules = schedule(
        "FREQ=MINUTELY;INTERVAL=30",
        without=("DTSTART:20260101T220000\nDURATION:PT8H\nRRULE:FREQ=DAILY",),
        tz="Europe/Berlin",
    )
    union = compile_schedule(rules)
    # Eight hours from 22:00 on end at 07:00 when the clock skips an hour: PT8H is exact.
    assert union.next_after(datetime(2026, 3, 28, 20, 45, tzinfo=UTC)) == datetime(2026, 3, 29, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (schedule("FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30"), "no day of the 400-year"),
        (
            schedule("FREQ=DAILY", without=("DTSTART;VALUE=DATE:19000101\nRRULE:FREQ=YEARLY\nDURATION:P400D",)),
            "exclusions",
        ),
        (schedule("at 2027-01-01T09:00Z", without=("at 2027-01-01T09:00Z",)), "exclusions"),
        (schedule("at 2027-01-01T09:00Z", end=NOV), "between its start and its end"),
        (
            schedule(
                "DTSTART:20260329T023000\nRRULE:FREQ=DAILY;COUNT=1", tz="Europe/Berlin", dst=DstPolicy(gap=Gap.SKIP)
            ),
            "skipped by DST",
        ),
    ],
    ids=["impossible", "always closed", "one closed", "past its end", "skipped"],
)
def test_never_is_decided_on_the_schedule(rules: ScheduleRules, reason: str) -> None:
    schedule = compile_schedule(rules)
    with pytest.raises(RuleNeverFires) as caught:
        schedule.first_slot(datetime(2026, 1, 1, tzinfo=UTC))
    assert reason in caught.value.why


def test_mistakes_name_their_rule() -> None:
    with pytest.raises(RuleInvalid) as caught:
        compile_schedule(schedule("FREQ=DAILY", "FREQ=DAILY;BYMONTH=13"))
    assert caught.value.details["rule"] == 1
    with pytest.raises(RuleInvalid) as caught:
        compile_schedule(schedule("FREQ=DAILY", without=("FREQ=DAILY;BYMONTH=13",)))
    assert caught.value.details["rule"] == 1
    for rules in (ScheduleRules(()), schedule(*["FREQ=DAILY"] * (MAX_RULES + 1))):
        with pytest.raises(RuleInvalid):
            compile_schedule(rules)
    with pytest.raises(RuleInvalid):
        compile_schedule(schedule("FREQ=DAILY", start=datetime(2026, 1, 1)))


def test_words_ends_and_shifts() -> None:
    rules = schedule(
        "0 12 * * *", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30", without=("FREQ=WEEKLY;BYDAY=SU;BYHOUR=12",), tz="Europe/Berlin"
    )
    union = compile_schedule(rules)
    assert union.text().count("(Europe/Berlin)") == 3
    assert "; and also every day at 02:30" in union.text()
    assert "; but never every week on Sunday at 12:00" in union.text()
    assert not union.ends()
    assert union.shifted(datetime(2026, 3, 29, 1, 30, tzinfo=UTC))
    assert not union.shifted(datetime(2026, 3, 28, 1, 30, tzinfo=UTC))
    assert compile_schedule(schedule("FREQ=DAILY", end=NOV)).ends()
    assert compile_schedule(ScheduleRules((RuleSpec("FREQ=DAILY", Kind.RRULE),))).next_after(NOV) is not None
    assert date(2026, 11, 21) == compile_schedule(schedule("FREQ=DAILY")).next_after(NOV).date()


def test_what_an_edit_would_change() -> None:
    old = compile_schedule(schedule("FREQ=DAILY;BYHOUR=9"))
    new = compile_schedule(schedule("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9", "at 2026-11-21T12:00Z"))
    changed = difference(old, new, NOV, NOV + timedelta(days=7))
    assert [slot.day for slot in changed.dropped] == [21, 22]
    assert changed.added == (datetime(2026, 11, 21, 12, tzinfo=UTC),)
    assert changed.complete_to == NOV + timedelta(days=7)
    assert difference(old, old, NOV, NOV + timedelta(days=99)).dropped == ()
    cut = difference(old, new, NOV, NOV + timedelta(days=99), at_most=3)
    assert cut.complete_to == datetime(2026, 11, 22, 9, tzinfo=UTC)

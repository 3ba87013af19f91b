"""Slots by the second: what is laid out at once is what a walk from slot to slot finds, and rows of closed seconds cost a few looks.

A rule of every second with an exclusion of whole hours by the second was walked through for 3600 slots on the day of a change.
"""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from bench.adversarial import schedule as hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.recurrence.counted import Counting
from tests.unit.recurrence.test_exclusion_proofs import drawn
from tests.unit.recurrence.volume import examples

from lodger.engine.recurrence import spread
from lodger.engine.recurrence.civil import instant_of, utc_floor
from lodger.engine.recurrence.closing import leaves_of
from lodger.engine.recurrence.compile import _compile
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.freed import LEAP_S
from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Recurrence, RuleSpec, ScheduleRules
from lodger.engine.recurrence.spread import seconds_of
from lodger.engine.recurrence.union import Union

NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
EVEN = "*/2 * 2 * * *"
ODD = "1-59/2 * 2 * * *"


def compare(rule: Recurrence, begin: datetime, length_s: int) -> bool:
    """Hold the bits of a stretch against the first slots of a walk; False when the rule is not known by the second."""
    seconds = seconds_of(rule)
    if seconds is None:
        return False
    first, _ = utc_floor(begin)
    bits = seconds.bits(first, length_s)
    slot, found = rule.next_after(instant_of(first), inclusive=True), []
    while slot is not None and (at := utc_floor(slot)[0] - first) < length_s and len(found) < 200:
        found.append(at)
        slot = rule.next_after(slot)
    walked = found[-1] + 1 if len(found) == 200 else length_s
    assert bits & (1 << walked) - 1 == sum(1 << at for at in found), (begin, length_s)
    assert bits >> length_s == 0
    return True


@settings(max_examples=examples(12), deadline=None, derandomize=examples(1) == 1)
@given(st.integers(0, 2**40))
def test_bits_are_what_a_walk_finds(seed: int) -> None:
    dice = Random(seed)
    try:
        schedule = _compile(dice.choice((hostile, drawn))(dice), NOW)
    except RuleInvalid:
        return
    rules = [leaf for rule in schedule.rules for leaf in leaves_of(rule)]
    rules += [leaf for window in schedule.exclusions for leaf in leaves_of(window.opens)]
    rules += [source for each in schedule.asked if (source := getattr(each, "source", None)) is not None]
    for rule in rules:
        for _ in range(3):
            near = datetime(dice.randint(1920, 2090), dice.choice((3, 4, 9, 10, 11)), dice.randint(1, 30), tzinfo=UTC)
            instant = dice.choice((near, datetime(dice.randint(2, 9998), 6, 1, tzinfo=UTC)))
            slot = rule.next_after(instant) or instant
            compare(
                rule, slot - timedelta(seconds=dice.choice((0, 1, 7200, 90_000))), dice.choice((10, 86_400, LEAP_S))
            )


@pytest.mark.parametrize("gap", Gap)
@pytest.mark.parametrize("fold", Fold)
@pytest.mark.parametrize("tz", ["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"])
def test_days_of_changes_are_laid_out_as_they_are_walked(tz: str, gap: Gap, fold: Fold) -> None:
    changes = [(2027, 3, 27), (2027, 10, 30), (2027, 4, 3), (2011, 12, 29), (2027, 2, 6), (2027, 3, 13)]
    for text in ("*/7 * * * *", "30 1-3 * * *", "FREQ=HOURLY;INTERVAL=5;BYMINUTE=0,59", "FREQ=MINUTELY;INTERVAL=7"):
        rule = parse_rule(RuleSpec(text), default_tz=tz, dst=DstPolicy(gap, fold))
        for year, month, day in changes:
            for hour in (0, 9, 14):
                assert compare(rule, datetime(year, month, day, hour, tzinfo=UTC), LEAP_S)


def test_the_comparison_sees_images_that_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = parse_rule(RuleSpec("30 2 * * *"), default_tz="Europe/Berlin", dst=DstPolicy(Gap.SHIFT, Fold.FIRST))
    begin = datetime(2027, 3, 28, tzinfo=UTC)
    assert compare(rule, begin, 86_400)
    monkeypatch.setattr(spread._OnClock, "_images", lambda *_: 0)
    with pytest.raises(AssertionError):
        compare(rule, begin, 86_400)


@pytest.mark.parametrize("tz", ["Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize(
    ("rule", "closed"),
    [
        ("FREQ=SECONDLY", ["FREQ=SECONDLY;BYHOUR=1,2"]),
        ("FREQ=SECONDLY;BYHOUR=3,4", ["FREQ=SECONDLY;BYHOUR=2"]),
        ("FREQ=SECONDLY", [EVEN, ODD]),
        ("* * * * * *", ["DTSTART;TZID=Asia/Tokyo:20200101T000000\nRRULE:FREQ=SECONDLY;BYHOUR=9,10,15"]),
    ],
)
def test_seconds_that_are_closed_one_by_one_are_leapt_over(rule: str, closed: list[str], tz: str) -> None:
    kept = _compile(ScheduleRules((RuleSpec(rule),), tuple(RuleSpec(each) for each in closed), tz=tz), NOW)
    bare, counting = Union(kept.rules), Counting(kept)
    for begin in (
        datetime(2027, 3, 28, tzinfo=UTC),
        datetime(2027, 3, 14, 6, tzinfo=UTC),
        datetime(2027, 10, 31, tzinfo=UTC),
    ):
        for hours in (0, 1, 1.5, 2.25):
            instant = begin + timedelta(hours=hours)
            counting.begin()
            found = kept.next_after(instant)
            counting.hold()
            slot = bare.next_after(instant)
            while slot is not None and kept.closed_until(slot) is not None:
                slot = bare.next_after(slot)
            assert found == slot
            assert slot is not None
            counting.begin()
            back = kept.previous_before(slot)
            counting.hold()
            assert back is not None
            assert kept.next_after(back) == slot


def test_schedules_of_more_rules_than_a_question_can_ask_are_refused() -> None:
    many = "\n".join(f"RRULE:FREQ=MINUTELY;INTERVAL={97 + n};BYMONTH=2" for n in range(14))
    rules = tuple(RuleSpec(f"DTSTART:202001{n + 1:02}T000000\n{many}") for n in range(30))
    with pytest.raises(RuleInvalid) as caught:
        _compile(ScheduleRules(rules), NOW)
    assert caught.value.code == "schedule_too_large"
    fair = tuple(RuleSpec(f"FREQ=MONTHLY;BYDAY=-1FR;BYHOUR={n % 24};BYMINUTE={n}") for n in range(32))
    assert _compile(ScheduleRules(fair, tz="Europe/Berlin"), NOW).next_after(NOW) is not None

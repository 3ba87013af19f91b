"""Schedules with exclusions against their rules walked slot by slot, each slot held against every exclusion.

The walk uses none of what decides exclusions when a schedule is kept: it asks the bare rules, and the windows one by one.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from bench.adversarial import cron, part, rrule_set, schyntax
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.recurrence.counted import Counting
from tests.unit.recurrence.volume import examples

from lodger.engine.recurrence import closing
from lodger.engine.recurrence.apart import Apart, apart
from lodger.engine.recurrence.compile import _compile
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, RuleSpec, ScheduleRules
from lodger.engine.recurrence.union import LAST, Union
from lodger.engine.recurrence.zones import Zone

NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
_ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Pacific/Apia",
    "America/Sao_Paulo",
)
#: How far ahead of UTC a zone's clocks are at the end of 9999.
_AHEAD = {
    "Pacific/Kiritimati": timedelta(hours=14),
    "Australia/Lord_Howe": timedelta(hours=11),
    "UTC": timedelta(),
    "Pacific/Honolulu": timedelta(hours=-10),
}
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
#: Slots that the slow walk goes through before it gives a question up.
_PATIENCE = 120


def _rule(dice: Random) -> str:
    shape = dice.random()
    if shape < 0.3:
        return rrule_set(dice, exceptions=dice.random() < 0.3)
    if shape < 0.5:
        return part(dice)
    if shape < 0.7:
        return cron(dice)
    if shape < 0.85:
        return schyntax(dice)
    return f"every {dice.choice((1, 60, 90, 3600, 5400, 86_399, 86_400, 604_801))}s"


def _blackout(dice: Random) -> str:
    shape = dice.random()
    start = f"{dice.choice((1970, 2020, 2026))}{dice.randint(1, 12):02}{dice.randint(1, 28):02}"
    freq = dice.choice(("DAILY", "WEEKLY", "MONTHLY", "YEARLY", "HOURLY"))
    extra = dice.choice(
        ("", ";BYDAY=SA,SU", ";INTERVAL=2", ";BYMONTHDAY=13", ";BYMONTH=1,2,3", ";COUNT=50", ";INTERVAL=17")
    )
    if shape < 0.35:
        freq = "DAILY" if freq == "HOURLY" else freq
        return f"DTSTART;VALUE=DATE:{start}\nRRULE:FREQ={freq}{extra}"
    if shape < 0.75:
        length = dice.choice(("PT1S", "PT90M", "PT8H", "PT23H", "PT24H", "PT30H", "P3D", "PT23H59M59S"))
        zone = dice.choice(("", "", f";TZID={dice.choice(_ZONES)}"))
        return f"DTSTART{zone}:{start}T{dice.randint(0, 23):02}{dice.choice(('00', '30'))}00\nDURATION:{length}\nRRULE:FREQ={freq}{extra}"
    return _rule(dice)


def drawn(dice: Random) -> ScheduleRules:
    """A schedule with exclusions of which some often touch its rules."""
    rules = [_rule(dice) for _ in range(dice.choice((1, 1, 1, 2)))]
    closed = [_blackout(dice) if dice.random() < 0.8 else dice.choice(rules) for _ in range(dice.choice((1, 1, 2, 3)))]
    dst = DstPolicy(dice.choice((None, *Gap)), dice.choice((None, *Fold))) if dice.random() < 0.4 else DstPolicy()
    return ScheduleRules(
        tuple(RuleSpec(rule) for rule in rules),
        tuple(RuleSpec(rule) for rule in closed),
        tz=dice.choice(_ZONES),
        dst=dst,
    )


def _slow(schedule: Union, bare: Union, instant: datetime, *, back: bool) -> tuple[bool, datetime | None]:
    """The answer by walking, and whether there was one."""
    step = bare.previous_before if back else bare.next_after
    slot = step(instant)
    for _ in range(_PATIENCE):
        if slot is None:
            return True, None
        windows = [window for each in schedule.exclusions if (window := each.covering(slot)) is not None]
        if not windows:
            return True, slot
        if back:
            slot = step(min(begin for begin, _ in windows))
        else:
            latest = max(end for _, end in windows)
            slot = bare.next_after(latest, inclusive=latest > slot)
    return False, None


def check(rules: ScheduleRules, dice: Random) -> str:
    """Compare several questions; give ``kept``, ``refused`` or ``wrong``."""
    try:
        schedule = _compile(rules, NOW)
    except RuleInvalid as error:
        return "dense" if error.code == "exclusions_too_dense" else "refused"
    bare = Union(schedule.rules, start=schedule.start, end=schedule.end)
    counting = Counting(schedule)
    for _ in range(3):
        instant = NOW + timedelta(seconds=dice.randint(-40 * 366 * 86400, 60 * 366 * 86400))
        if dice.random() < 0.5:
            instant = NOW + timedelta(seconds=dice.randint(-400 * 86400, 400 * 86400))
        if dice.random() < 0.2:
            instant = datetime(dice.randint(1, 9998), 6, 1, tzinfo=UTC)
        for back in (False, True):
            counting.begin()
            found = (schedule.previous_before if back else schedule.next_after)(instant)
            counting.hold()
            known, expected = _slow(schedule, bare, instant, back=back)
            if known:
                assert found == expected, (instant, back)
    return "kept"


@settings(max_examples=examples(10), deadline=None, derandomize=examples(1) == 1)
@given(st.integers(0, 2**40))
def test_what_exclusions_leave_is_what_a_walk_finds(seed: int) -> None:
    dice = Random(seed)
    check(drawn(dice), dice)


@pytest.mark.parametrize("closed", ["DTSTART;VALUE=DATE:19260615\nRRULE:FREQ=DAILY;BYMONTH=1,2", "0 9 * * *"])
@pytest.mark.parametrize("rule", ["every 1s", "every 90s", "DTSTART:20200101T000000Z\nRRULE:FREQ=MINUTELY"])
@pytest.mark.parametrize("tz", ["Pacific/Kiritimati", "Australia/Lord_Howe", "UTC", "Pacific/Honolulu"])
def test_what_no_calendar_of_an_exclusion_has_a_date_for_is_no_slot(rule: str, closed: str, tz: str) -> None:
    """East of Greenwich year 10000 begins while it is still 9999 in UTC."""
    schedule = _compile(ScheduleRules((RuleSpec(rule),), (RuleSpec(closed),), tz=tz), NOW)
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - max(_AHEAD[tz], timedelta())
    after = last - timedelta(seconds=90)
    slots = [slot for slot in Union(schedule.rules).between(after, schedule.last) if slot <= last]
    assert slots
    assert list(schedule.between(after, LAST)) == slots
    assert schedule.previous_before(LAST, inclusive=True) == slots[-1]
    assert schedule.next_after(last) is None


def test_a_clock_that_is_an_hour_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself: with differences of zones an hour wrong it fails."""
    nights = RuleSpec("DTSTART;TZID=Europe/Berlin:20200101T220000\nDURATION:PT9H\nRRULE:FREQ=DAILY")
    rules = ScheduleRules((RuleSpec("*/30 * * * *"),), (nights,), tz="America/New_York")
    assert check(rules, Random(1)) == "kept"

    def wrong(here: Zone, there: Zone) -> Apart:
        known = apart(here, there)
        return replace(known, ahead=tuple(replace(each, by_s=each.by_s + 3600) for each in known.ahead))

    monkeypatch.setattr(closing, "apart", wrong)
    with pytest.raises(AssertionError):
        check(rules, Random(1))

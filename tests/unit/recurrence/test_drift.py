"""Intervals that drift against their exclusions: fair ones are kept, their questions are short, and the answers are a walk's."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.recurrence.counted import Counting
from tests.unit.recurrence.volume import examples

from lodger.engine.recurrence import drift
from lodger.engine.recurrence.compile import _compile, _windows, compile_schedule
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import RuleSpec, ScheduleRules
from lodger.engine.recurrence.union import Union
from lodger.engine.recurrence.window import Windows

NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
NIGHTS = "DTSTART:20200101T220000\nDURATION:PT9H\nRRULE:FREQ=DAILY"
WEEKENDS = "DTSTART;VALUE=DATE:20200104\nRRULE:FREQ=WEEKLY;BYDAY=SA,SU"
CHRISTMAS = "DTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY"
ZONES = ["UTC", "Asia/Kolkata", "Europe/Berlin", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia"]


def schedule(rule: str, *closed: str, tz: str = "UTC") -> Union:
    return _compile(ScheduleRules((RuleSpec(rule),), tuple(RuleSpec(each) for each in closed), tz=tz), NOW)


@pytest.mark.parametrize("tz", ZONES)
@pytest.mark.parametrize(
    ("rule", "closed"),
    [
        ("every 7m", ["0 9 * * *"]),
        ("every 7m", [NIGHTS, WEEKENDS, CHRISTMAS]),
        ("every 13m", ["0 9 * * *", "0 17 * * *", "every 11m"]),
        ("every 1500ms", [NIGHTS, CHRISTMAS, "every 4s"]),
        ("every 2.5s", ["0 9 * * *", "0 17 * * *", "every 11m"]),
        ("every 100m", [NIGHTS, "0 9 * * 1-5"]),
        ("every 25h", ["0 9 * * *", NIGHTS, CHRISTMAS]),
        ("every 86399s", ["every 14m", "0 9 * * *"]),
        ("FREQ=SECONDLY", ["FREQ=SECONDLY;BYHOUR=1,2"]),
        ("FREQ=MINUTELY;INTERVAL=7", ["0 9 * * *", NIGHTS]),
        ("FREQ=HOURLY;INTERVAL=5", ["every 3h"]),
        ("*/5 * * * *", ["every 11m", NIGHTS]),
        ("FREQ=MINUTELY;INTERVAL=7", ["every 9s", "every 11m"]),
        ("* * * * * *", ["every 1500ms", "every 4s"]),
        ("every 11d", ["DTSTART;TZID=Europe/Berlin:20200101T220000\nDURATION:PT9H\nRRULE:FREQ=DAILY"]),
    ],
)
def test_fair_schedules_are_kept(rule: str, closed: list[str], tz: str) -> None:
    if tz == "Pacific/Apia" and NIGHTS in closed and "every" not in rule:
        pytest.skip("a clock that once jumped a whole day leaves nothing proved of days near any change")
    check(schedule(rule, *closed, tz=tz), Random(1))


@pytest.mark.parametrize(
    ("rule", "closed"),
    [
        # Ten hours of drift by a second a day: more than thirty thousand slots in a row are closed.
        ("every 86399s", [NIGHTS]),
        # Every slot is closed.
        ("every 90m", ["every 45m"]),
    ],
)
def test_what_is_closed_for_long_is_not_said_to_be_short(rule: str, closed: list[str]) -> None:
    source = parse_rule(RuleSpec(rule))
    assert isinstance(source, Every)
    row = drift.longest_row(source, [_window(text) for text in closed])
    assert row is None or row.slots > 1000


def _window(text: str) -> Windows:
    return _windows(RuleSpec(text), ScheduleRules((), tz="Europe/Berlin"), NOW)


@pytest.mark.parametrize("tz", ["Europe/Berlin", "Africa/Casablanca"])
def test_what_closes_everything_is_left_at_once_across_changes_of_clocks(tz: str) -> None:
    """It was left from change to change: 30 000 steps up to year 9999."""
    odd = f"DTSTART;TZID={tz}:00010517T081100\nRRULE:FREQ=MONTHLY;INTERVAL=975028366"
    kept = schedule("every 86399s", "DTSTART;VALUE=DATE:19260207\nRRULE:FREQ=DAILY", odd, tz=tz)
    check(kept, Random(1))
    assert kept.next_after(NOW) is None
    assert kept.ends()


def test_a_schedule_with_nothing_left_but_days_near_changes_is_not_walked() -> None:
    """Days beside a change were held for free, and those near changes of single years were forgotten: half a million steps."""
    for tz in ("Europe/Berlin", "Africa/Casablanca"):
        try:
            kept = schedule("every 100m", "*/20 * * * *", tz=tz)
        except RuleInvalid:
            continue
        check(kept, Random(1))


def test_what_is_refused_is_refused_with_its_reason() -> None:
    with pytest.raises(RuleInvalid) as caught:
        schedule("every 86399s", NIGHTS, tz="Europe/Berlin")
    assert caught.value.code == "exclusions_too_dense"


def check(kept: Union, dice: Random) -> None:
    """Hold answers around random instants against a walk, and count how often a question asks its rule."""
    bare = Union(kept.rules)
    counting = Counting(kept)
    for _ in range(4):
        instant = NOW + timedelta(seconds=dice.randint(-30 * 366 * 86_400, 60 * 366 * 86_400))
        if dice.random() < 0.5:  # in the nights of which many clocks change
            instant = instant.replace(month=dice.choice((3, 4, 10, 11)), day=dice.randint(1, 30))
        for back in (False, True):
            counting.begin()
            found = (kept.previous_before if back else kept.next_after)(instant)
            counting.hold()
            known, expected = _walk(kept, bare, instant, back=back)
            assert not known or found == expected, (instant, back)


def _walk(kept: Union, bare: Union, instant: datetime, *, back: bool) -> tuple[bool, datetime | None]:
    """The answer by walking, and whether there was one in bounded time."""
    slot = (bare.previous_before if back else bare.next_after)(instant)
    for _ in range(500):
        if slot is None:
            return True, None
        windows = [window for each in kept.exclusions if (window := each.covering(slot)) is not None]
        if not windows:
            return True, slot
        if back:
            slot = bare.previous_before(min(begin for begin, _ in windows))
        else:
            latest = max(end for _, end in windows)
            slot = bare.next_after(latest, inclusive=latest > slot)
    return False, None


@settings(max_examples=examples(15), deadline=None, derandomize=examples(1) == 1)
@given(st.integers(0, 2**40))
def test_drawn_intervals_are_never_asked_more_often_than_proved(seed: int) -> None:
    dice = Random(seed)
    length = dice.choice(
        ("7m", "11m", "90s", "100m", "5h", "7h", "25h", "3d", "1500ms", "86401s", f"{dice.randint(1, 90_000)}s")
    )
    shut = [NIGHTS, WEEKENDS, CHRISTMAS, "0 9 * * *", "*/20 * * * *", "every 11m", "every 9s", "0 */3 1 * *"]
    windows = dice.sample(shut, dice.randint(1, 4))
    try:
        kept = schedule(f"every {length}", *windows, tz=dice.choice(ZONES))
    except RuleInvalid:
        return
    check(kept, dice)


@settings(max_examples=examples(15), deadline=None, derandomize=examples(1) == 1)
@given(st.integers(0, 2**40))
def test_drawn_rules_beside_intervals_are_never_asked_more_often_than_proved(seed: int) -> None:
    dice = Random(seed)
    rules = [
        "*/5 * * * *",
        "0 */2 * * *",
        "* 8-17 * * 1-5",
        "FREQ=HOURLY;INTERVAL=5",
        "FREQ=MINUTELY;INTERVAL=25",
        "*/7 * * * * *",
    ]
    rules += [
        "FREQ=SECONDLY;INTERVAL=45",
        "FREQ=DAILY;INTERVAL=3;BYHOUR=1,2,3,9",
        "min(*%20) hours(1..4)",
        "FREQ=HOURLY;BYDAY=SU",
    ]
    steps = [
        f"every {dice.choice((3, 7, 9, 11, 60, 95, 180, dice.randint(2, 4000)))}{dice.choice(('s', 'm'))}"
        for _ in range(3)
    ]
    closed = dice.sample([*steps, "every 1500ms", NIGHTS, WEEKENDS, CHRISTMAS, "0 9 * * *"], dice.randint(1, 3))
    try:
        kept = schedule(dice.choice(rules), *closed, tz=dice.choice(ZONES))
    except RuleInvalid:
        return
    check(kept, dice)


def test_the_bound_itself_is_held_to_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that forgets the other intervals is found out by counting."""
    source = Every(60_000_000)
    windows = [_window(text) for text in ("every 2m", "every 3m")]
    row = drift.longest_row(source, windows)
    assert row is not None
    assert row.slots >= 3  # minutes 2, 3 and 4 are closed
    monkeypatch.setattr(drift, "open_among", lambda *_: 1)
    short = drift.longest_row(source, windows)
    assert short is not None
    assert short.slots < 3


def test_a_schedule_is_compiled_as_a_tenant_writes_it() -> None:
    rules = ScheduleRules((RuleSpec("every 7m"),), (RuleSpec("0 9 * * *"),), tz="Europe/Berlin")
    assert compile_schedule(rules).next_after(NOW) is not None

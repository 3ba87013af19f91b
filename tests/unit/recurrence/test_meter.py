"""Reading a schedule is bounded work: what a hostile one makes it do is counted, and fair ones stay far from the bound."""

from datetime import UTC, datetime
from time import thread_time

import pytest

from lodger.engine.recurrence import compile as compiling
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.meter import _LEFT, MOST, Metered, TooLong, spend
from lodger.engine.recurrence.rule import Kind, RuleSpec, ScheduleRules

_NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
_NIGHTS = "DTSTART:20200101T220000\nDURATION:PT9H\nRRULE:FREQ=DAILY"
_THIRD_DAYS = "DTSTART;VALUE=DATE:20261121\nRRULE:FREQ=DAILY;INTERVAL=3"


def _drifting(hours: int, every: int) -> str:
    """Windows of most of a day that drift through days and years."""
    return (
        f"DTSTART;TZID=Africa/Casablanca:18830913T0408{hours:02}\nDURATION:PT23H59M59S\n"
        f"RRULE:FREQ=HOURLY;INTERVAL={every};BYMONTH=6;BYMONTHDAY=13\nRRULE:FREQ=WEEKLY;INTERVAL={every + 1};BYDAY=MO,TH"
    )


#: It took more than nine seconds of CPU to find out that nothing is proved of such schedules.
_HOSTILE = ScheduleRules(
    (
        RuleSpec("{m(29..4) h(18..12%11) dates(2/29)} {h(6..10%3) dom(!14)} {h(12) dates(2/29)}"),
        RuleSpec("every 1009s"),
    ),
    tuple(RuleSpec(_drifting(n, 3000 + 97 * n), Kind.RRULE) for n in range(12)),
    tz="Europe/Dublin",
)


def test_what_is_too_much_to_read_is_given_up() -> None:
    """Counted past what is allowed, so the meter is what ends it."""
    begin = thread_time()
    with pytest.raises(TooLong), Metered(MOST + MOST // 20):
        compiling._read(_HOSTILE, _NOW)
    assert thread_time() - begin < 10  # gross: twenty times what is meant


def test_the_refusal_says_what_and_why() -> None:
    with pytest.raises(RuleInvalid) as caught, Metered(50_000):
        compiling._compile(_HOSTILE, _NOW)
    assert caught.value.code == "schedule_too_large"
    assert "counted" in str(caught.value.why)


@pytest.mark.parametrize(
    ("rule", "closed"),
    [
        ("*/5 * * * *", ["every 11m", _NIGHTS]),
        ("every 7h", [_THIRD_DAYS, "FREQ=DAILY;BYHOUR=9"]),
        ("FREQ=SECONDLY", ["FREQ=SECONDLY;BYHOUR=1,2"]),
        ("DTSTART:20260101T000000\nRRULE:FREQ=MINUTELY;INTERVAL=7;COUNT=100000", [_NIGHTS]),
        ("0 9 * * 1-5", [_NIGHTS, _THIRD_DAYS, "DTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY"]),
    ],
)
@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin"])
def test_fair_schedules_are_read(rule: str, closed: list[str], tz: str) -> None:
    rules = ScheduleRules((RuleSpec(rule),), tuple(map(RuleSpec, closed)), tz=tz)
    try:
        assert compiling._compile(rules, _NOW).next_after(_NOW) is not None
    except RuleInvalid as error:
        assert error.code == "exclusions_too_dense"  # noqa: PT017 - not proved is another thing than too much to read


def test_the_same_work_is_counted_every_time() -> None:
    """Verdicts are those of every machine: nothing is remembered between two readings, and no clock is looked at."""
    rules = ScheduleRules((RuleSpec("every 7h"),), (RuleSpec(_THIRD_DAYS),), tz="Europe/Berlin")

    def spent() -> int:
        with Metered():
            compiling._read(rules, _NOW)
            left = _LEFT.get()
        assert left is not None
        return MOST - left[0]

    assert spent() == spent() > 10_000


def test_a_meter_inside_another_counts_on() -> None:
    with Metered(10):
        spend(6)
        with Metered(100), pytest.raises(TooLong):
            spend(6)
    spend(1_000_000_000)  # nobody counts

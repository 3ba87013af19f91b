"""Exclusions are decided when a schedule is kept, so that no question about it walks far or raises."""

from datetime import UTC, datetime, timedelta
from time import thread_time

import pytest

from lodger.engine.recurrence.compile import compile_firing, compile_schedule
from lodger.engine.recurrence.errors import RuleInvalid, RuleNeverFires
from lodger.engine.recurrence.rule import RuleSpec, ScheduleRules
from lodger.engine.recurrence.union import Union

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAYS_OFF = "DTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY"
FRIDAYS_OFF = "DTSTART;VALUE=DATE:20261127\nRRULE:FREQ=WEEKLY;INTERVAL=2"
NIGHT = "DTSTART:19700101T220000\nDURATION:PT9H\nRRULE:FREQ=DAILY"
SUNDAYS = "DTSTART;VALUE=DATE:19700104\nRRULE:FREQ=WEEKLY"
MORNINGS = "FREQ=MINUTELY;INTERVAL=2;BYHOUR=" + ",".join(map(str, range(12)))
AFTERNOONS = "FREQ=HOURLY;BYHOUR=" + ",".join(map(str, range(12, 24)))
ODD = "FREQ=SECONDLY;BYSECOND=" + ",".join(map(str, range(1, 60, 2)))


def made(rule: str, *without: str, tz: str | None = "Europe/Berlin") -> ScheduleRules:
    return ScheduleRules((RuleSpec(rule),), tuple(RuleSpec(text) for text in without), tz=tz)


@pytest.mark.parametrize(
    ("rule", "without", "first"),
    [
        ("FREQ=SECONDLY", ("FREQ=SECONDLY;INTERVAL=2",), NOW + timedelta(seconds=1)),
        ("every 5m", (NIGHT,), NOW + timedelta(minutes=5)),
        ("0 9 * * 5", (FRIDAYS_OFF,), datetime(2026, 12, 4, 8, tzinfo=UTC)),
        ("0 9 * * 5", (FRIDAYS_OFF, DAYS_OFF), datetime(2026, 12, 4, 8, tzinfo=UTC)),
        ("FREQ=HOURLY;INTERVAL=5", (NIGHT, SUNDAYS), None),
        ("FREQ=MINUTELY;INTERVAL=7;BYHOUR=9,10", (DAYS_OFF,), None),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=9", (DAYS_OFF,), datetime(2026, 11, 30, 8, tzinfo=UTC)),
        ("every 36h", (SUNDAYS,), None),
    ],
)
def test_what_leaves_free_slots_is_kept_and_quick(rule: str, without: tuple[str, ...], first: datetime | None) -> None:
    schedule = compile_firing(made(rule, *without))
    bare = Union(schedule.rules)
    if first is not None:
        assert schedule.next_after(NOW) == first
    slot = NOW
    for _ in range(50):
        start = thread_time()
        found = schedule.next_after(slot)
        assert thread_time() - start < 2
        assert found is not None
        walked = bare.next_after(slot)
        while walked is not None and schedule.closed_until(walked) is not None:
            walked = bare.next_after(walked)
        assert found == walked
        slot = found


@pytest.mark.parametrize(
    ("rule", "without"),
    [
        ("FREQ=SECONDLY", ("FREQ=SECONDLY;INTERVAL=2", ODD)),
        ("FREQ=HOURLY", (MORNINGS, AFTERNOONS)),
        ("FREQ=WEEKLY;BYDAY=SU;BYHOUR=12", (SUNDAYS.replace("1970", "1890").replace("0104", "0105"),)),
        ("FREQ=SECONDLY;INTERVAL=86399", ("FREQ=SECONDLY;INTERVAL=2", ODD)),
    ],
)  # fmt: skip
def test_nothing_left_is_proved_and_not_walked(rule: str, without: tuple[str, ...]) -> None:
    start = thread_time()
    with pytest.raises(RuleNeverFires) as caught:
        compile_firing(made(rule, *without))
    assert "exclusions" in caught.value.why
    schedule = compile_schedule(made(rule, *without))
    assert schedule.next_after(NOW) is None
    assert schedule.previous_before(NOW) is None
    assert thread_time() - start < 10


def test_covered_from_some_day_on_is_an_end() -> None:
    schedule = compile_schedule(made("FREQ=SECONDLY", "DTSTART;VALUE=DATE:20261201\nRRULE:FREQ=DAILY"))
    assert schedule.ends()
    assert schedule.next_after(datetime(2026, 12, 1, tzinfo=UTC)) is None
    assert schedule.previous_before(datetime(2999, 1, 1, tzinfo=UTC)) == datetime(2026, 11, 30, 22, 59, 59, tzinfo=UTC)


def test_what_is_not_decided_is_refused_before_it_is_kept() -> None:
    """A step that drifts through the day under exclusions that drift too: its free slots are not known to be near."""
    odd = ("FREQ=SECONDLY;INTERVAL=86399", "FREQ=MINUTELY;INTERVAL=7;BYSECOND=" + ",".join(map(str, range(60))))
    start = thread_time()
    with pytest.raises(RuleInvalid) as caught:
        compile_schedule(made("FREQ=SECONDLY;INTERVAL=86401", *odd, "every 1500ms"))
    assert caught.value.code == "exclusions_too_dense"
    assert thread_time() - start < 10


BERLIN_NIGHTS = "DTSTART;TZID=Europe/Berlin:20200101T220000\nDURATION:PT9H\nRRULE:FREQ=DAILY"
HOLIDAYS = (
    "DTSTART;VALUE=DATE:20201225\nRDATE;VALUE=DATE:20211224,20211226,20260101,20261224,20270101\nRRULE:FREQ=YEARLY"
)
MAINTENANCE = "DTSTART;TZID=America/New_York:20200105T020000\nDURATION:PT4H\nRRULE:FREQ=WEEKLY"
MONTH_ENDS = "DTSTART:20200131T000000\nDURATION:P2D\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1"
FAIR = ("FREQ=MINUTELY", "every 7s", "every 36h", "0 12 * * 1-5")


@pytest.mark.parametrize("tz", ["UTC", "America/New_York"])
@pytest.mark.parametrize(
    "without", [(BERLIN_NIGHTS,), (HOLIDAYS,), (BERLIN_NIGHTS, SUNDAYS, HOLIDAYS, MAINTENANCE), (MONTH_ENDS,)]
)
def test_blackouts_of_another_zone_and_lists_of_dates_are_kept(tz: str, without: tuple[str, ...]) -> None:
    """Nights in Berlin for a rule of Kolkata, holidays with RDATEs: what anybody may write, over a change of the clocks."""
    for rule in FAIR:
        anchored = RuleSpec(rule, dtstart="20240101T000000" if "INTERVAL" in rule else None)
        schedule = compile_firing(ScheduleRules((anchored,), tuple(RuleSpec(text) for text in without), tz=tz))
        bare = Union(schedule.rules)
        for start in (NOW, datetime(2027, 3, 27, 20, tzinfo=UTC), datetime(2051, 10, 28, 20, tzinfo=UTC)):
            walked = bare.next_after(start)
            while walked is not None and (end := schedule.closed_until(walked)) is not None:
                walked = bare.next_after(end, inclusive=end > walked)
            slot = schedule.next_after(start)
            assert slot == walked, (rule, start)
            assert slot is not None
            assert schedule.previous_before(slot + timedelta(microseconds=1)) == slot

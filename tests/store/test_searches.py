"""Schedules with a long search for the next slot: the clock stores how far it came, and continues there; and slots that come too close."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings
from lodger.engine.recurrence.rule_errors import RuleNeverFires
from lodger.engine.store.actions.change_triggers import TriggerResult, request_run
from lodger.engine.store.queue.followers import Follower, Position
from lodger.engine.sync import Engine

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
#: Closed second by second until 09:00: no search of 20 000 steps comes so far.
BY_THE_SECOND = {"rules": "* * * * * *", "exclusions": "* * 0-8 * * *"}


@pytest.fixture
def real(url: str) -> Iterator[Bench]:
    clock = VirtualClock()
    settings = Settings(sqlite_synchronous="NORMAL", min_interval_s=1)
    with Engine.open(url, clock=clock, settings=settings) as engine:
        bench = Bench(engine, clock)
        bench.tenant(concurrent_runs=100)
        yield bench


def test_a_clock_stores_how_far_it_searched_and_goes_on_there(real: Bench) -> None:
    made = real.schedule(**BY_THE_SECOND)
    assert made.state == "armed"
    assert made.next_at is None
    searched, looks = made.searched_to, 0
    while searched is not None:
        assert from_us(real.clock.us) < searched < BEGIN + timedelta(hours=9), "it looks again before the slot is due"
        real.clock.us = to_us(searched)
        real.tick()
        found = real.engine.schedules.get("acme", "s")
        assert real.actions(made) == []
        assert found.next_at is None or found.next_at == BEGIN + timedelta(hours=9)
        searched, looks = found.searched_to, looks + 1
    assert looks > 3
    real.clock.us = to_us(BEGIN + timedelta(hours=9))
    real.tick()
    assert [action.slot for action in real.actions(made)] == [BEGIN + timedelta(hours=9)]


def test_a_node_that_was_off_catches_up_with_the_search(real: Bench) -> None:
    made = real.schedule(**BY_THE_SECOND, missed="latest")
    real.clock.us = to_us(BEGIN + timedelta(hours=9, minutes=1))
    for _ in range(100):
        if real.engine.schedules.get("acme", "s").searched_to is None:
            break
        real.tick()
    (gap, run) = real.actions(made)
    assert (gap.slot, gap.state) == (BEGIN + timedelta(hours=9), "skipped")
    assert (run.slot, run.reason) == (BEGIN + timedelta(hours=9, minutes=1), "caught_up")


def test_what_has_no_slot_for_years_is_refused_by_name(real: Bench) -> None:
    with pytest.raises(RuleNeverFires) as refused:
        real.schedule("0 9 * * *", exclusions=["0 12 * * *", "DTSTART;VALUE=DATE:20200101\nRRULE:FREQ=DAILY"])
    assert refused.value.code == "rule_never_fires"
    assert "exclusion 2" in refused.value.why
    assert real.engine.schedules.list() == []


def test_slots_that_come_too_close_later_are_skipped_rows(url: str) -> None:
    """One rule of every minute begins when saving has looked at its first slots; the limit is ten minutes."""
    clock = VirtualClock()
    burst = "DTSTART:20260301T090000\nRRULE:FREQ=MINUTELY;INTERVAL=4;COUNT=6"
    with Engine.open(url, clock=clock, settings=Settings(sqlite_synchronous="NORMAL", min_interval_s=600)) as engine:
        bench = Bench(engine, clock)
        bench.tenant(concurrent_runs=100)
        with pytest.raises(InputError) as refused:
            bench.schedule(["0 */2 * * *", burst])
        assert refused.value.code == "rule_too_frequent"
        made = bench.schedule(["*/15 * * * *", burst], overlap="allow")
        clock.us = to_us(datetime(2026, 3, 1, 8, 59, tzinfo=UTC))
        bench.tick()
        for _ in range(25):
            clock.advance(60)
            bench.tick()
    reported = {action.slot: (action.state, action.reason) for action in bench.actions(made)}
    nine = datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert [reported[nine + timedelta(minutes=each)][0] for each in (0, 12)] == ["ready", "ready"]
    skipped = [slot for slot, (_, reason) in reported.items() if reason == "min_interval"]
    assert sorted(skipped) == [nine + timedelta(minutes=each) for each in (4, 8, 15, 16, 20)]


def test_a_schedule_on_changes_honours_its_start_and_its_exclusions(real: Bench) -> None:
    night = "DTSTART:20260101T220000\nDURATION:PT8H\nRRULE:FREQ=DAILY"
    made = real.schedule("on changes of orders", exclusions=[night, "0 12 * * *"], start=BEGIN + timedelta(hours=8))
    follower = Follower("acme", made.id, "orders")
    opens = {
        timedelta(hours=7): False,
        timedelta(hours=12): False,
        timedelta(hours=23): False,
        timedelta(hours=9): True,
    }
    for after, is_open in opens.items():
        real.clock.us = to_us(BEGIN + after)
        with real.engine.context.database.write() as connection:
            woken = request_run(
                real.engine.context, connection, follower, real.clock.us, before=None, until=Position(0, 1)
            )
        assert woken is (TriggerResult.ASKED if is_open else TriggerResult.RESTS), after

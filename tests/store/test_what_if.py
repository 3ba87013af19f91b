"""What an edit would change, said before it is made: over the past as over the future, with nothing stored."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.errors import NotFound
from lodger.engine.core.settings import Settings
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.sync import Engine

MONDAY = datetime(2026, 3, 23, tzinfo=UTC)


@pytest.fixture
def bench(url: str) -> Iterator[Bench]:
    """With every language of rules, which the other tests of the ledger do without."""
    clock = VirtualClock()
    with Engine.open(url, clock=clock, settings=Settings(sqlite_synchronous="NORMAL", min_interval_s=1)) as engine:
        yield Bench(engine, clock)


def test_weekends_and_another_zone_over_a_change_of_the_clocks(bench: Bench) -> None:
    bench.tenant()
    bench.schedule("0 9 * * *", tz="UTC")
    reported = bench.engine.schedules.what_if(
        "acme", "s", rules="0 9 * * 1-5", since=MONDAY, until=MONDAY + timedelta(days=7)
    )
    assert reported.dropped == (datetime(2026, 3, 28, 9, tzinfo=UTC), datetime(2026, 3, 29, 9, tzinfo=UTC))
    assert (reported.added, reported.complete_to) == ((), MONDAY + timedelta(days=7))
    assert reported.before != reported.after
    moved = bench.engine.schedules.what_if(
        "acme", "s", tz="Europe/Berlin", since=MONDAY + timedelta(days=5), until=MONDAY + timedelta(days=7)
    )
    # Saturday in winter time, Sunday in summer time.
    assert [slot.hour for slot in moved.added] == [8, 7]
    assert [slot.hour for slot in moved.dropped] == [9, 9]


def test_it_is_what_the_edit_does_and_stores_nothing(bench: Bench) -> None:
    bench.tenant()
    before = bench.schedule("0 * * * *")
    since, until = MONDAY, MONDAY + timedelta(days=2)
    old = bench.engine.schedules.preview(["0 * * * *"], after=since - timedelta(seconds=1), n=48).slots
    reported = bench.engine.schedules.what_if(
        "acme", "s", rules="*/30 * * * *", exclusions="0 3 * * *", since=since, until=until
    )
    assert bench.engine.schedules.get("acme", "s") == before
    edited = bench.engine.schedules.edit("acme", "s", rules="*/30 * * * *", exclusions="0 3 * * *")
    new = bench.engine.schedules.preview(
        edited.rules.rules, exclusions=edited.rules.exclusions, after=since - timedelta(seconds=1), n=94
    ).slots
    assert set(reported.dropped) == set(old) - set(new)
    assert set(reported.added) == set(new) - set(old)
    assert reported.dropped
    again = bench.engine.schedules.what_if("acme", "s", since=since, until=until)
    assert (again.dropped, again.added) == ((), ())


def test_a_range_of_too_many_slots_says_how_far_it_was_compared(bench: Bench) -> None:
    bench.tenant()
    bench.schedule("every 1s")
    reported = bench.engine.schedules.what_if("acme", "s", rules="every 2s", at_most=100)
    assert len(reported.dropped) + len(reported.added) <= 100
    assert (
        reported.complete_to < bench.engine.schedules.what_if("acme", "s", rules="every 2s", at_most=10**9).complete_to
    )
    with pytest.raises(RuleInvalid):
        bench.engine.schedules.what_if("acme", "s", rules="every nonsense")
    with pytest.raises(NotFound):
        bench.engine.schedules.what_if("acme", "t", rules="every 2s")

"""A clock that was years ahead for some seconds: what it wrote is found, and one verb brings it back."""

from datetime import timedelta

import pytest
from tests.store.bench import THROWN, Bench
from tests.store.virtual_clock import EPOCH

from lodger.engine.core.clock import from_us
from lodger.engine.store.lifecycle import wrong_clock
from lodger.engine.store.lifecycle.wrong_clock import Ahead

YEARS = 10 * 366 * 86_400 * 1_000_000


def rows_ahead(bench: Bench) -> list[Ahead]:
    with bench.engine.context.database.read() as connection:
        return wrong_clock.find(connection, bench.clock.us)


def bring_back(bench: Bench) -> list[Ahead]:
    with bench.engine.context.database.write() as connection:
        return wrong_clock.bring_back(bench.engine.context, connection, bench.clock.us)


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """A ledger whose first rows, which the real clock dates, are of the bench's time."""
    bring_back(bench)
    return bench


@pytest.mark.parametrize("missed", ["latest", "all", "skip"])
def test_schedules_go_on_where_they_were(bench: Bench, missed: str) -> None:
    bench.tenant()
    schedule = bench.schedule(missed=missed)
    bench.clock.advance(60)
    bench.tick()
    bench.run()
    bench.clock.us += YEARS
    bench.tick()
    bench.clock.us -= YEARS
    stuck = bench.engine.schedules.get("acme", "s").next_at
    assert stuck is not None
    assert stuck > EPOCH + timedelta(days=3000)
    assert {each.table for each in rows_ahead(bench)} >= {"lodger_actions", "lodger_schedule_clock"}
    bring_back(bench)
    assert rows_ahead(bench) == []
    assert bench.engine.schedules.get("acme", "s").next_at == EPOCH + timedelta(seconds=120)
    assert [each.slot for each in bench.actions(schedule)] == [EPOCH + timedelta(seconds=60)], (
        "what has not come is not there"
    )
    bench.clock.advance(60)
    bench.tick()
    assert len(bench.run()) == 1
    assert [each.slot for each in bench.actions(schedule)] == [EPOCH + timedelta(seconds=at) for at in (60, 120)]


def test_a_schedule_that_ended_by_the_wrong_clock_is_armed_again(bench: Bench) -> None:
    bench.tenant()
    bench.schedule("FREQ=DAILY;UNTIL=20290101T000000Z")
    bench.clock.us += YEARS
    bench.tick()
    bench.clock.us -= YEARS
    assert bench.engine.schedules.get("acme", "s").state == "ended"
    bring_back(bench)
    after = bench.engine.schedules.get("acme", "s")
    assert (after.state, after.next_at is not None and after.next_at < EPOCH + timedelta(days=2)) == ("armed", True)


def test_runs_keep_their_results_and_leases_retries_and_expiries_their_length(bench: Bench) -> None:
    bench.tenant()
    bench.schedule(retry={"attempts": 3, "backoff_s": 600})
    bench.engine.run_in("acme", "job", 3_600_000)
    bench.clock.us += YEARS
    bench.engine.tokens.create("made ahead", "admin", expires_at=from_us(bench.clock.us) + timedelta(days=1))
    late = bench.engine.run_in("acme", "job", 3_600_000)
    bench.tick()
    bench.run(THROWN)
    bench.clock.us -= YEARS
    now = from_us(bench.clock.us)
    bring_back(bench)
    assert rows_ahead(bench) == []
    day = timedelta(days=1)
    (token,) = bench.engine.tokens.list()
    assert token.expires_at is not None
    assert now < token.expires_at <= now + day
    retried = [each for each in bench.actions() if each.attempt]
    assert retried, "what was tried is kept"
    assert all(each.due_at <= now + timedelta(minutes=15) for each in retried)
    again = bench.engine.actions.get("acme", late.id)
    assert now < again.due_at <= now + timedelta(hours=1, minutes=1)
    until = bench.scalar("SELECT max(lease_until_us) FROM lodger_nodes")
    assert isinstance(until, int)
    assert until < bench.clock.us + 3_600_000_000


def test_what_is_rightly_in_the_future_stays(bench: Bench) -> None:
    bench.tenant()
    bench.schedule("every 1d")
    planned = bench.engine.run_at("acme", "job", EPOCH + timedelta(days=4000))
    before = bench.engine.schedules.get("acme", "s")
    assert rows_ahead(bench) == []
    assert bring_back(bench) == []
    assert bench.engine.schedules.get("acme", "s") == before
    assert bench.engine.actions.get("acme", planned.id).due_at == EPOCH + timedelta(days=4000)

"""Two transactions at once on PostgreSQL: the tenant's lock keeps a tick and a commit from missing each other's writing."""

import threading
from collections.abc import Callable

import pytest
from sqlalchemy import text
from tests.store.bench import OK, Bench

from lodger.engine.core.clock import SystemClock
from lodger.engine.effects import outcome_commit
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.queue import ready_queue


@pytest.fixture(autouse=True)
def server_only(kind: str) -> None:
    if kind == "sqlite":
        pytest.skip("SQLite has one writer")


def waits(bench: Bench) -> bool:
    """Whether some transaction of this database waits for another's lock."""
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bench.scalar(blocked) == 1


def until(condition: Callable[[], bool]) -> None:
    clock = SystemClock()
    end = clock.elapsed_s() + 120
    while not condition():
        assert clock.elapsed_s() < end


def tick_beside_commit(bench: Bench) -> list[str]:
    """One action runs; the next slot's tick sees it running and, before it has committed, the run is committed."""
    bench.tenant()
    schedule = bench.schedule(overlap="queue_one")
    bench.clock.advance(60)
    bench.tick()
    (running,) = bench.claim()
    lease, context = bench.lease(), bench.engine.context
    bench.clock.advance(60)

    def commit() -> None:
        with context.database.write() as connection:
            outcome_commit.commit(context, connection, lease, [(running, OK)], bench.clock.us)

    with context.database.write() as connection:
        assert len(tick.tick(context, connection, bench.clock.us)) == 1
        other = threading.Thread(target=commit)
        other.start()
        until(lambda: waits(bench) or not other.is_alive())
    other.join()
    bench.run()
    return bench.states(schedule)


def test_what_a_tick_queues_behind_a_run_that_just_ends_is_let_go(bench: Bench) -> None:
    assert tick_beside_commit(bench) == ["done", "done"]


def test_without_the_lock_it_is_held_for_ever(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_queue, "lock", lambda *_: None)
    assert tick_beside_commit(bench) == ["done", "ready"]
    assert bench.claim() == []


def test_a_tick_and_a_claim_pass_by_a_tenant_that_another_transaction_holds(bench: Bench) -> None:
    for tenant in ("acme", "zeta"):
        bench.tenant(tenant)
        bench.schedule(tenant_id=tenant)
    bench.clock.advance(60)
    context = bench.engine.context
    with context.database.write() as connection:
        ready_queue.lock(connection, ["acme"])
        assert [each.tenant_id for each in bench.tick()] == ["zeta"]
        assert [each.tenant_id for each in bench.claim()] == ["zeta"]
    assert [each.tenant_id for each in bench.tick()] == ["acme"]
    assert [each.tenant_id for each in bench.claim()] == ["acme"]


def test_leases_go_by_the_servers_time_unless_a_clock_is_given(url: str) -> None:
    from lodger.engine.sync import Engine

    with Engine.open(url) as engine:
        context = engine.context
        with context.database.write() as connection:
            of_server = connection.scalar(text("SELECT extract(epoch FROM clock_timestamp()) * 1000000"))
            # This process's own clock may say what it wants.
            assert abs(context.lease_us(connection, 0) - int(of_server or 0)) < 60_000_000


def test_a_commit_locks_no_action_of_a_tenant_that_it_does_not_commit(bench: Bench) -> None:
    """Another transaction that holds the tenant may need an action that this commit has locked: each would wait for the other."""
    for tenant in ("acme", "other"):
        bench.schedule(tenant_id=bench.tenant(tenant))
    bench.clock.advance(60)
    bench.tick()
    claimed = {each.tenant_id: each for each in bench.claim()}
    with bench.engine.context.database.write() as connection:
        ready_queue.lock(connection, ["other"])
        connection.execute(text("SELECT id FROM lodger_actions WHERE tenant_id = 'other' FOR UPDATE"))
        assert len(bench.commit(claimed["acme"]).settled) == 1

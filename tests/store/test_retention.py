"""History is kept as long as the tenant's retention says, and no claim or law depends on what is forgotten."""

import pytest
from sqlalchemy import event
from tests.store.bench import Bench

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import InputError
from lodger.engine.store.lifecycle import retention

DAY = 86_400


def forget(bench: Bench, tenant_id: str = "acme") -> int:
    with bench.engine.context.database.write() as connection:
        rows = retention.find_old(bench.engine.context, connection, tenant_id, bench.clock.us)
        retention.delete_actions(connection, rows, bench.clock.us)
    return len(rows)


def runs(bench: Bench, number: int) -> None:
    for _ in range(number):
        bench.clock.advance(60)
        bench.tick()
        bench.run()


def test_what_is_older_than_the_days_goes_with_its_attempts_and_logs(bench: Bench) -> None:
    bench.tenant(retention_days=2)
    bench.tenant("other")
    schedule = bench.schedule()
    bench.engine.run_in("acme", "job", 0)
    runs(bench, 3)
    bench.engine.schedules.pause("acme", "s")
    bench.clock.advance(2 * DAY - 121)
    assert forget(bench) == 0
    bench.clock.advance(122)
    assert forget(bench) == 3
    (kept,) = bench.actions(tenant_id="acme")
    assert kept.slot == from_us(bench.clock.us - (2 * DAY + 1) * 1_000_000), "the last one tells what it returned"
    assert bench.scalar("SELECT count(*) FROM lodger_attempts") == 1
    assert forget(bench) == forget(bench, "other") == forget(bench, "nobody") == 0
    bench.engine.schedules.resume("acme", "s")
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.claim()
    assert (claim.schedule_id, claim.last_result) == (schedule.id, {"done": True})


def test_of_each_schedule_the_newest_are_kept(bench: Bench) -> None:
    bench.tenant(retention_runs=3)
    first, second = bench.schedule(name="a"), bench.schedule(name="b")
    runs(bench, 5)
    assert forget(bench) == 4
    for schedule in (first, second):
        assert len(bench.actions(schedule)) == 3
        assert bench.actions(schedule)[-1].slot == from_us(bench.clock.us)


def test_what_is_not_over_is_kept_however_old(bench: Bench) -> None:
    bench.tenant(retention_days=1)
    bench.schedule()
    bench.clock.advance(60)
    bench.tick()
    far = bench.engine.run_in("acme", "job", 10 * DAY * 1000)
    bench.claim(1)
    bench.clock.advance(5 * DAY)
    assert forget(bench) == 0
    assert far.id in {action.id for action in bench.actions()}


def test_much_is_forgotten_in_bounded_steps(bench: Bench) -> None:
    bench.tenant(retention_runs=1)
    bench.schedule("every 1s", missed="all")
    bench.clock.advance(150)
    bench.tick()
    bench.engine.schedules.delete("acme", "s")
    asked: list[bool] = []
    engine = bench.engine.context.database.engine
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[-1]))
    assert forget(bench) == retention.MAX_ROWS == 100
    # One statement for all rows of a table: a transaction holds the tenant's lock for so long, however slow the network is.
    assert not any(asked)
    assert len(asked) <= 28
    assert forget(bench) == 49
    assert forget(bench) == 0


def test_forgotten_slots_are_not_run_again_by_a_tick_or_a_backfill(bench: Bench) -> None:
    bench.tenant(retention_runs=1)
    schedule = bench.schedule()
    begun = bench.clock.us
    runs(bench, 5)
    assert forget(bench) == 4
    assert bench.tick() == []
    with pytest.raises(InputError) as refused:
        bench.engine.actions.backfill(
            schedule.tenant_id, schedule.id, start=from_us(begun), end=from_us(bench.clock.us)
        )
    assert refused.value.code == "backfill_forgotten"
    after = from_us(begun + 240_000_001)
    assert (
        bench.engine.actions.backfill(
            schedule.tenant_id, schedule.id, start=after, end=from_us(bench.clock.us + 0)
        ).actions
        == ()
    )


def test_a_round_passes_by_tenants_that_have_nothing_to_forget(bench: Bench) -> None:
    for tenant in ("acme", "beech", "cedar"):
        bench.tenant(tenant)
    bench.engine.run_in("beech", "job", 0)
    with bench.engine.context.database.write() as connection:
        connection.exec_driver_sql("INSERT INTO lodger_kv VALUES ('cedar', '', 'k', '1', 5, 0)")
    with bench.engine.context.database.read() as connection:
        assert retention.tenants_after(connection, "") == ["beech", "cedar"]
        assert retention.tenants_after(connection, "beech") == ["cedar"]

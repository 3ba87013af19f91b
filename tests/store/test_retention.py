"""History is kept as long as the tenant's retention says, and no claim or law depends on what is forgotten."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from sqlalchemy import event
from tests.store.bench import Bench, node_id
from tests.store.virtual_clock import VirtualClock

from lodger.engine.cli.readiness import checks
from lodger.engine.core.clock import SystemClock, from_us
from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.events import EventBus
from lodger.engine.core.metrics import ProcessMetrics, prometheus_text
from lodger.engine.core.settings import Settings
from lodger.engine.node.context import NodeContext, NodeIdentity, ServerClock
from lodger.engine.node.db_executor import DbExecutor
from lodger.engine.node.services import retention as service
from lodger.engine.store.lifecycle import retention
from lodger.engine.store.platform import node_rows

DAY = 86_400


def delete_old(bench: Bench, tenant_id: str = "acme") -> int:
    """Delete the actions that are older than the policy keeps; return their number."""
    with bench.engine.context.database.write() as connection:
        rows = retention.find_old(bench.engine.context, connection, tenant_id, bench.clock.us)
        retention.delete_actions(connection, rows, bench.clock.us, bench.clock.elapsed_s)
    return len(rows)


def run_slots(bench: Bench, number: int) -> None:
    for _ in range(number):
        bench.clock.advance(60)
        bench.tick()
        bench.run()


def test_what_is_older_than_the_days_goes_with_its_attempts_and_logs(bench: Bench) -> None:
    bench.tenant(retention_days=2)
    bench.tenant("other")
    schedule = bench.schedule()
    bench.engine.run_in("acme", "job", 0)
    run_slots(bench, 3)
    bench.engine.schedules.pause("acme", "s")
    bench.clock.advance(2 * DAY - 121)
    assert delete_old(bench) == 0
    bench.clock.advance(122)
    assert delete_old(bench) == 3
    (kept,) = bench.actions(tenant_id="acme")
    assert kept.slot == from_us(bench.clock.us - (2 * DAY + 1) * 1_000_000), "the last one tells what it returned"
    assert bench.scalar("SELECT count(*) FROM lodger_attempts") == 1
    assert delete_old(bench) == delete_old(bench, "other") == delete_old(bench, "nobody") == 0
    bench.engine.schedules.resume("acme", "s")
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.claim()
    assert (claim.schedule_id, claim.last_result) == (schedule.id, {"done": True})


def test_of_each_schedule_the_newest_are_kept(bench: Bench) -> None:
    bench.tenant(retention_runs=3)
    first, second = bench.schedule(name="a"), bench.schedule(name="b")
    run_slots(bench, 5)
    assert delete_old(bench) == 4
    for schedule in (first, second):
        assert len(bench.actions(schedule)) == 3
        assert bench.actions(schedule)[-1].slot == from_us(bench.clock.us)


def test_much_is_forgotten_in_bounded_steps(bench: Bench) -> None:
    bench.tenant(retention_runs=1)
    bench.schedule("every 1s", missed="all")
    bench.clock.advance(150)
    bench.tick()
    bench.engine.schedules.delete("acme", "s")
    asked: list[bool] = []
    engine = bench.engine.context.database.engine
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[-1]))
    assert delete_old(bench) == retention.MAX_ROWS == 100
    # One statement for all rows of a table: a transaction holds the tenant's lock for so long, however slow the network is.
    assert not any(asked)
    assert len(asked) <= 28
    assert delete_old(bench) == 49
    assert delete_old(bench) == 0


def test_forgotten_slots_are_not_run_again_by_a_tick_or_a_backfill(bench: Bench) -> None:
    bench.tenant(retention_runs=1)
    schedule = bench.schedule()
    begun = bench.clock.us
    run_slots(bench, 5)
    assert delete_old(bench) == 4
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


#: A deletion of one action that would take a minute: the database's own work on SQLite, a wait on PostgreSQL.
ENDLESS = {
    "sqlite": (
        """CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
        SELECT count(*) AS i FROM n""",
        "CREATE TRIGGER slow BEFORE DELETE ON lodger_actions WHEN OLD.id = '{id}' BEGIN SELECT i FROM endless; END",
        "CREATE TRIGGER slow_key BEFORE DELETE ON lodger_kv WHEN OLD.key = 'slow' BEGIN SELECT i FROM endless; END",
    ),
    "postgresql": (
        "CREATE FUNCTION endless() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN OLD; END'",
        "CREATE TRIGGER slow BEFORE DELETE ON lodger_actions FOR EACH ROW WHEN (OLD.id = '{id}') EXECUTE FUNCTION endless()",
        "CREATE TRIGGER slow_key BEFORE DELETE ON lodger_kv FOR EACH ROW WHEN (OLD.key = 'slow') EXECUTE FUNCTION endless()",
    ),
}


class Watch(VirtualClock):
    """The time stands, and durations pass."""

    def elapsed_s(self) -> float:
        return SystemClock().elapsed_s()


async def test_what_would_hold_locks_for_too_long_is_cancelled_halved_and_reported_and_the_rest_goes_on(
    bench: Bench, kind: str, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service, "ROUND_S", 0.0)
    bench.tenant(retention_runs=1)
    bench.schedule("every 1s", missed="all")
    bench.clock.advance(25)
    bench.tick()
    bench.engine.schedules.delete("acme", "s")
    slow = bench.actions()[5].id
    database, meters = bench.engine.context.database, ProcessMetrics()
    with database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO lodger_kv VALUES ('acme', '', 'k', '1', 5, 0), ('acme', '', 'slow', '1', 5, 0)"
        )
        for statement in ENDLESS[kind]:
            connection.exec_driver_sql(statement.format(id=slow))

    def figures() -> dict[tuple[str, ...], float]:
        return {
            (each.name, *(value for _name, value in sample.labels)): sample.value
            for each in meters.read()
            for sample in each.samples
            if "retention" in each.name
        }

    def left() -> tuple[object, ...]:
        return tuple(bench.scalar(f"SELECT count(*) FROM {table}") for table in ("lodger_actions", "lodger_kv"))

    clock, settings = ServerClock(Watch(bench.clock.us), 15_000_000), bench.engine.context.settings
    db = DbExecutor(database, 6.0)
    context = NodeContext(bench.engine.context, clock, settings, db, EventBus(), NodeIdentity(node_id("n1"), "n1"))
    retained = service.Retention(context, meters)
    try:
        # The newest one is kept anyway. On a busy machine more rounds may be needed.
        await rounds_until(retained, lambda: left() == (2, 1) and figures()["lodger_retention_too_slow",] == 2)
        assert slow in {action.id for action in bench.actions()}
        assert figures()["lodger_retention_overruns_total", "cancelled"] >= 3, "2, 1; 24 … 1, fewer on a busy machine"
        assert f"retention cannot delete acme {slow}" in caplog.text
        with database.write() as connection:
            publish = node_rows.publish_metrics
            publish(
                bench.engine.context,
                connection,
                node_id("p"),
                "n1",
                prometheus_text(meters.read()),
                SystemClock().now_us(),
            )
        listed = {each.name: each for each in checks(Settings(), {"ok": True, "layers": 6}, url)}
        assert (listed["retention"].state, listed["retention"].value) == ("warn", "2 rows left")
        with database.write() as connection:
            for trigger, table in (("slow", "lodger_actions"), ("slow_key", "lodger_kv")):
                connection.exec_driver_sql(f"DROP TRIGGER {trigger}" + f" ON {table}" * (kind == "postgresql"))
        await rounds_until(retained, lambda: left() == (1, 0) and figures()["lodger_retention_too_slow",] == 0)
    finally:
        db.close()


async def rounds_until(retained: service.Retention, enough: Callable[[], bool]) -> None:
    """Carry out rounds of the service until a condition holds."""
    for _ in range(200):
        # A process that stands still in a transaction loses its connection; the node tries again, and so does this.
        with suppress(Unavailable):
            await retained.round()
        if enough():
            return
    raise AssertionError("retention never got there")

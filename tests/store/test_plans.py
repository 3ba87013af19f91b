"""How databases answer what a node asks again and again: by the index that was made for it, and without work for each row."""

import time
from typing import Any

import pytest
from sqlalchemy import text
from tests.databases.fixtures import unused_url as url
from tests.store.bench import Bench
from tests.store.query_plans import plans, without_autovacuum

from lodger.engine.store.actions import actions
from lodger.engine.store.connection.database import Database
from lodger.engine.store.drivers.sqlite.rows import TOGETHER
from lodger.engine.store.lifecycle import leases, tick
from lodger.engine.store.platform import gauges
from lodger.engine.store.queue import followers

__all__ = ["url"]


def test_sqlite_reads_by_the_right_index_whatever_it_was_told(bench: Bench) -> None:
    """Statistics that were made while nothing waited tell it that an index holds nothing."""
    if bench.engine.context.database.driver.name != "sqlite":
        pytest.skip("PostgreSQL keeps its statistics itself")
    for number in range(50):
        bench.schedule(tenant_id=bench.tenant(f"t{number}"))
    with bench.engine.context.database.write() as connection:
        connection.execute(text("ANALYZE"))
    bench.clock.advance(60)

    def late() -> None:
        with bench.engine.context.database.read() as connection:
            gauges.overdue(connection, bench.clock.us)

    (clocks, *_turns) = plans(bench, late)
    assert "ix_lodger_schedule_clock_next" in clocks
    bench.tick()
    for tenant in (None, "t1"):
        (*_, groups) = plans(bench, lambda tenant=tenant: bench.engine.actions.errors(tenant))
        assert "ix_lodger_actions_failed" in groups, groups
        with bench.engine.context.database.read() as connection:
            latest = plans(bench, lambda tenant=tenant: actions.failed_since(connection, tenant, 0, 5))
        assert "ix_lodger_actions_failed" in latest[-1], latest
        running = plans(bench, lambda tenant=tenant: bench.engine.actions.running(tenant))
        assert any("ix_lodger_actions_running" in plan for plan in running), running
    sorted_by = plans(bench, lambda: bench.engine.tenants.activity(filter="sort:-failures"))
    assert any("ix_lodger_actions_failed" in plan for plan in sorted_by), sorted_by
    (line,) = [plan for plan in plans(bench, lambda: bench.claim(5)) if "served_us, lodger_turns.tenant_id" in plan]
    assert "ix_lodger_turns_line" in line
    assert "TEMP B-TREE" not in line


def test_sqlite_finds_each_row_of_a_hundred_by_its_key_whatever_it_was_told(bench: Bench) -> None:
    """Statistics of a time when the tables were small make it think that reading all of them is as good."""
    if bench.engine.context.database.driver.name != "sqlite":
        pytest.skip("PostgreSQL keeps its statistics itself")
    bench.schedule(tenant_id=bench.tenant("first"))
    with bench.engine.context.database.write() as connection:
        connection.execute(text("ANALYZE"))
    for number in range(TOGETHER + 10):
        bench.schedule(tenant_id=bench.tenant(f"t{number}"))
    bench.clock.advance(60)
    found = [plan for work in (bench.tick, lambda: bench.claim(5)) for plan in plans(bench, work) if "given" in plan]
    for table in ("lodger_schedule_clock", "lodger_turns", "lodger_actions"):
        assert any(f"SEARCH {table} USING" in plan for plan in found), table
        assert not any(f"SCAN {table}" in plan for plan in found), table


def test_postgresql_reads_lists_once_and_rewrites_sums_in_place(bench: Bench) -> None:
    """A list that is cast in a condition is parsed again for each row; a sum is no index's, so its row needs no new entries."""
    database = bench.engine.context.database
    if database.driver.name != "postgresql":
        pytest.skip("plans and statistics of PostgreSQL")
    bench.tenant()
    for number in range(20):
        bench.schedule(name=f"s{number}")
    found: list[str] = []

    def round_of_all() -> None:
        bench.clock.advance(60)
        found.extend(plans(bench, bench.tick))
        claimed: list[Any] = []
        found.extend(plans(bench, lambda: claimed.extend(bench.claim(20))))
        assert len(claimed) == 20
        found.extend(plans(bench, lambda: bench.commit(*claimed)))

    for _ in range(5):
        round_of_all()
    conditions = [line for plan in found for line in plan.splitlines() if "= ANY (" in line and line.startswith(" ")]
    assert len(conditions) > 10
    assert [line for line in conditions if "ANY (('{" in line] == []
    with database.write() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with database.read() as connection:
        rows = connection.execute(
            text(
                "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables "
                "WHERE relname IN ('lodger_usage_days', 'lodger_storage') ORDER BY 1"
            )
        ).all()
    assert [row[0] for row in rows] == ["lodger_storage", "lodger_usage_days"]
    assert all(row[1] >= 4 and row[1] == row[2] for row in rows), rows


#: Counts the other sessions of this database.
OTHER_SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


def pages_read(database: Database) -> int:
    """Return the pages that queries have looked at."""
    with database.read() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with database.read() as connection:
        counted = "sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0))"
        found = connection.scalar(text(f"SELECT {counted}::bigint FROM pg_statio_user_tables"))
    assert isinstance(found, int)
    return found


def test_postgresql_looks_at_no_more_for_tenants_and_schedules_that_are_not_due(bench: Bench) -> None:
    """Without statistics: autovacuum makes them a minute later at best, and a prepared plan would stay as it was."""
    database = bench.engine.context.database
    if database.driver.name != "postgresql":
        pytest.skip("counters of PostgreSQL; SQLite's plans are tested above")
    without_autovacuum(database)
    bench.schedule(tenant_id=bench.tenant())
    bench.schedule("on changes of carts", name="follows")

    def looked_at() -> int:
        """Count the pages of seven rounds: with the sixth use of a statement its plan no longer depends on values."""
        database.engine.dispose()  # new sessions, which prepare their statements anew; what the old ones did is counted when they end
        while bench.scalar(OTHER_SESSIONS):
            time.sleep(0.01)
        before = pages_read(database)
        for _ in range(7):
            bench.clock.advance(60)
            with database.write() as connection:
                assert len(tick.tick(bench.engine.context, connection, bench.clock.us)) == 1
                assert not tick.ask_any_due(connection, bench.clock.us)()
            assert len(bench.run()) == 1
            with database.read() as connection:
                tick.lookahead(connection, bench.clock.us, search_further=True)
                leases.find_overdue(bench.engine.context, connection, now_us=bench.clock.us)
                followers.list_followers(connection, since_us=bench.clock.us - 1)
                followers.list_followers(connection, "carts", {"acme"})
        return pages_read(database) - before

    few = looked_at()
    bench.schedule("every 1d", tenant_id=bench.tenant("idle"))
    bench.schedule("on changes of carts", tenant_id="idle", name="follows")
    with database.write() as connection:  # many tenants like this one
        for table, key in (("tenants", "id"), ("turns", "tenant_id"), ("scripts", "tenant_id"),
                           ("schedules", "tenant_id"), ("schedule_clock", "tenant_id"), ("followers", "tenant_id")):  # fmt: skip
            copied = f"(jsonb_populate_record(one, jsonb_build_object('{key}', 'idle' || number))).*"
            every = f"FROM lodger_{table} one, generate_series(1, 600) number WHERE {key} = 'idle'"
            connection.execute(text(f"INSERT INTO lodger_{table} SELECT {copied} {every}"))
    assert looked_at() < 1.2 * few

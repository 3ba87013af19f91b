"""Alert rules of tenants with nothing to report cost no work for each of them."""

import time

import pytest
from sqlalchemy import text
from tests.databases.fixtures import unused_url as url
from tests.store.bench import Bench
from tests.store.pages_read import OTHER_SESSIONS, pages_read

from lodger.engine.features.alerts import evaluation
from lodger.engine.features.alerts.kinds import AlertKind

__all__ = ["url"]


def test_postgresql_looks_at_no_more_for_schedules_without_rules(bench: Bench) -> None:
    database = bench.engine.context.database
    if database.driver.name != "postgresql":
        pytest.skip("counters of PostgreSQL")
    with database.write() as connection:  # autovacuum looks at pages, too
        tables = connection.scalars(text("SELECT relname FROM pg_stat_user_tables")).all()
        connection.exec_driver_sql("; ".join(f"ALTER TABLE {each} SET (autovacuum_enabled = false)" for each in tables))
    bench.schedule(tenant_id=bench.tenant())
    bench.engine.grants.people("acme", ["ann@shop.example"])
    bench.engine.alerts.put("acme", "page", kinds=list(AlertKind), mail=["ann@shop.example"])

    def looked_at() -> int:
        database.engine.dispose()  # new sessions; what the old ones did is counted when they end
        while bench.scalar(OTHER_SESSIONS):
            time.sleep(0.01)
        before = pages_read(database)
        for _ in range(7):  # with the sixth use of a statement its plan no longer depends on values
            bench.clock.advance(60)
            with database.read() as connection:
                evaluation.find(bench.engine.context, connection, bench.clock.us)
        return pages_read(database) - before

    few = looked_at()
    bench.schedule("every 1d", tenant_id=bench.tenant("idle"))
    with database.write() as connection:
        for table, key in (("tenants", "id"), ("turns", "tenant_id"), ("scripts", "tenant_id"),
                           ("schedules", "tenant_id"), ("schedule_clock", "tenant_id")):  # fmt: skip
            copied = f"(jsonb_populate_record(one, jsonb_build_object('{key}', 'idle' || number))).*"
            every = f"FROM lodger_{table} one, generate_series(1, 600) number WHERE {key} = 'idle'"
            connection.execute(text(f"INSERT INTO lodger_{table} SELECT {copied} {every}"))
    assert looked_at() < 1.2 * few

"""Row-level security on every table of Lodger's: also with every privilege the scripts' role sees its tenant's data and nothing else."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text
from tests.databases.server import Server
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine

#: What a script's own questions are asked of.
ASKED = {
    "lodger_changes", "lodger_changes_forgotten", "lodger_collection_indexes", "lodger_cursors", "lodger_document_index",
    "lodger_documents", "lodger_kv",
}  # fmt: skip
_TABLES = text(
    "SELECT c.relname, c.relrowsecurity, "
    "has_any_column_privilege('lodger_script_postgres', c.oid, 'SELECT, INSERT, UPDATE') FROM pg_class c "
    "WHERE c.relkind = 'r' AND c.relname LIKE 'lodger\\_%' AND c.relname <> 'lodger_version'"
)


@pytest.fixture
def bench(server: Server) -> Iterator[Bench]:
    name = server.database(empty=True)
    clock, settings = VirtualClock(), Settings(min_interval_s=1)
    with Engine.open(server.url(name), clock=clock, settings=settings) as engine:
        yield Bench(engine, clock)
    server.drop(name)


def test_every_table_has_it_and_the_role_may_read_only_what_is_asked(bench: Bench) -> None:
    with bench.engine.context.database.read() as connection:
        rows = connection.execute(_TABLES).all()
    assert len(rows) > 30
    assert {row[0] for row in rows if not row[1]} == set(), "a migration that makes a table enables it there"
    assert {row[0] for row in rows if row[2]} == ASKED


def test_privileges_given_by_mistake_show_nothing(bench: Bench) -> None:
    for tenant in ("one", "two"):
        bench.tenant(tenant)
        bench.schedule(tenant_id=tenant)
    bench.clock.advance(60)
    bench.tick()
    bench.run()
    with bench.engine.context.database.write() as connection:
        tables = [row[0] for row in connection.execute(_TABLES)]
        for tenant in ("one", "two"):
            connection.execute(
                text("INSERT INTO lodger_kv VALUES (:tenant, '', 'k', '1', NULL, 0)"), {"tenant": tenant}
            )
        connection.execute(text("GRANT ALL ON ALL TABLES IN SCHEMA public TO lodger_script_postgres"))
        full = {table for table in tables if connection.scalar(text(f"SELECT count(*) FROM {table}"))}
        assert {"lodger_actions", "lodger_scripts", "lodger_schedules", "lodger_tenants", "lodger_turns"} <= full
        for tenant, seen in (("", set()), ("one", {"lodger_kv"})):
            connection.execute(text("SET LOCAL ROLE lodger_script_postgres"))
            connection.execute(text("SELECT set_config('lodger.tenant', :tenant, true)"), {"tenant": tenant})
            assert {table for table in tables if connection.scalar(text(f"SELECT count(*) FROM {table}"))} == seen
            assert connection.execute(text("SELECT tenant_id FROM lodger_kv")).scalars().all() == [tenant] * len(seen)
            assert connection.execute(text("UPDATE lodger_actions SET state = 'failed'")).rowcount == 0
            connection.execute(text("RESET ROLE"))
        connection.rollback()

"""How often an export and a restore wait for PostgreSQL, counted by a proxy: once for each page of a table's rows."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.bench.slow_proxy import SlowProxy
from lodger.engine.core.settings import Settings
from lodger.engine.features.archive.export import PAGE, tables
from lodger.engine.sync import Engine

if TYPE_CHECKING:
    from tests.databases.server import Server

#: Of an export, beside a page of each table; of a restore, beside each page after the first of a table.
EXPORT, RESTORE, PAGES = 2, 13, 3


def test_an_archive_waits_once_for_each_page(server: "Server", name: str, tmp_path: Path) -> None:
    """Without the token of a call of the API."""
    settings = Settings(secret_keys=tmp_path / "keys")
    with (
        SlowProxy(server.url(name)) as proxy,
        Engine.open(proxy.url, clock=(clock := VirtualClock()), settings=settings) as engine,
    ):
        far = Bench(engine, clock)
        far.tenant("acme")
        with engine.context.database.write() as connection:
            connection.exec_driver_sql(
                "INSERT INTO lodger_kv (tenant_id, scope, key, value, updated_us) "
                f"SELECT 'acme', '', 'k' || n, '1', 1 FROM generate_series(1, {(PAGES - 1) * PAGE + 1}) n"
            )
        engine.tenants.suspend("acme")
        for _ in range(2):  # the first prepares its statements
            begun = proxy.trips
            archive = engine.tenants.export("acme")
            exported = proxy.trips - begun
            engine.tenants.delete("acme")
            begun = proxy.trips
            engine.tenants.restore("acme", archive)
            restored = proxy.trips - begun
        # The end of a read is not waited for, and may be counted.
        assert exported - EXPORT - len(tables()) in {PAGES - 1, PAGES}
        assert restored <= RESTORE + PAGES - 1
        assert far.scalar("SELECT count(*) FROM lodger_kv") == (PAGES - 1) * PAGE + 1

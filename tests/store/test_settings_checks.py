"""What a database's settings put at risk is found: on SQLite the journal, on PostgreSQL durability, standbys, connections, clocks."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.databases.server import Server
from tests.store.virtual_clock import VirtualClock

from lodger.engine.cli.readiness import checks
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.settings import Settings
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.drivers.features import Check
from lodger.engine.sync import Engine

WALLS = {"ok": True, "layers": 6}


def checks_by_name(url: str) -> dict[str, Check]:
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            return {each.name: each for each in driver_of(connection).check_settings(connection)}
    finally:
        engine.dispose()


def test_a_file_without_wal_or_with_commits_that_are_not_synchronized(tmp_path: Path) -> None:
    plain = checks_by_name(f"sqlite:///{tmp_path / 'plain.db'}")
    assert (plain["journal mode"].state, plain["journal mode"].value) == ("fail", "delete")
    for level, state in (("FULL", "ok"), ("NORMAL", "warn")):
        with (
            Engine.open(str(tmp_path / "ledger.db"), settings=Settings(sqlite_synchronous=level)) as engine,
            engine.context.database.read() as connection,
        ):
            states = {each.name: each.state for each in driver_of(connection).check_settings(connection)}
        assert {name: states[name] for name in ("journal mode", "synchronous")} == {
            "journal mode": "ok",
            "synchronous": state,
        }


def test_a_server_that_does_not_wait_for_its_disk(server: Server, name: str) -> None:
    url = server.url(name)
    states = {each.name: each.state for each in checks_by_name(url).values()}
    # The tests' own server is quick rather than safe.
    assert states == {
        "server version": "ok", "fsync": "fail", "full_page_writes": "fail", "synchronous_commit": "warn", "primary": "ok",
        "connections": "ok",
    }  # fmt: skip
    weak = checks_by_name(url)["synchronous_commit"]
    assert "runs are repeated" in weak.why
    assert weak.fix
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f'ALTER DATABASE "{name}" SET synchronous_commit = on')
    engine.dispose()
    assert checks_by_name(url)["synchronous_commit"].state == "ok"


@pytest.mark.parametrize(("off_s", "state"), [(0, "ok"), (1, "warn"), (-5, "fail")])
def test_a_clock_that_differs_from_the_databases(server: Server, name: str, off_s: int, state: str) -> None:
    class Off(VirtualClock):
        def now_us(self) -> int:
            return SystemClock().now_us() + off_s * 1_000_000

    listed = {each.name: each for each in checks(Settings(), WALLS, server.url(name), Off())}
    assert listed["clock"].state == state
    assert listed["schema"].state == "ok"


def test_a_server_that_cannot_be_reached_fails() -> None:
    listed = {each.name: each for each in checks(Settings(), WALLS, "postgresql://localhost:9/none")}
    assert listed["ledger"].state == "fail"
    assert listed["ledger"].value == "database_unreachable"

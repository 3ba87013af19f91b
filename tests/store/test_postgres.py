"""Opening a ledger on a server: what is refused says what to do, what a session needs ends with its transaction."""

import asyncio
from contextlib import closing

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError
from tests.databases.fixtures import server_url as url
from tests.databases.server import Server
from tests.store.bench import node_id

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.data.sets.reads import ThreadReads
from lodger.engine.store.connection import laws
from lodger.engine.store.connection.database import Database
from lodger.engine.store.connection.inspection import inspect_database
from lodger.engine.store.drivers.features import StatementTimeout
from lodger.engine.store.drivers.postgresql import connections as module
from lodger.engine.store.lifecycle import leases
from lodger.engine.store.queue import ready_queue
from lodger.engine.sync import Engine

__all__ = ["url"]


def refusal_of(url: str) -> Unavailable:
    with pytest.raises(Unavailable) as error:
        Database(url).close()
    assert error.value.fix
    return error.value


def test_a_server_that_is_not_there(tmp_path: object) -> None:
    assert refusal_of(f"postgresql://nobody@/none?host={tmp_path}").code == "database_unreachable"


def test_a_database_and_a_user_that_are_not_there(server: Server) -> None:
    assert refusal_of(server.url("absent")).code == "database_login_refused"
    assert refusal_of(server.url("postgres", user="stranger")).code == "database_login_refused"


def test_a_database_that_cannot_hold_every_text(server: Server) -> None:
    for encoding in ("LATIN1", "SQL_ASCII"):
        with psycopg.connect(server.conninfo("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE other ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        error = refusal_of(server.url("other"))
        assert (error.code, encoding in error.what) == ("database_encoding", True)
        assert inspect_database(server.url("other")).verdict == "empty"
        server.drop("other")


def test_a_schema_that_is_not_there_and_addresses_with_another_driver(server: Server, name: str) -> None:
    url = server.url(name)
    more = "&" if "?" in url else "?"
    assert refusal_of(f"{url}{more}options=-csearch_path%3Dnowhere").code == "database_schema_missing"
    scheme = url.partition("://")[0]
    for driver in ("asyncpg", "psycopg2", "psycopg", "psycopg_async", "pg8000"):
        place = url.replace(f"{scheme}://", f"postgresql+{driver}://", 1)
        with closing(Database(place)) as opened, opened.read() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    ssl = url.replace(f"{scheme}://", "postgresql+asyncpg://", 1) + f"{more}ssl=prefer"
    Database(ssl).close()
    with Engine.open(f"{url}{more}client_encoding=latin1") as engine:
        assert engine.tenants.create("t", "Łódź").name == "Łódź"
    for wrong in ("nope=1", "ssl=require"):
        with pytest.raises(InputError) as unknown:
            Database(f"{url}{more}{wrong}")
        assert (unknown.value.code, wrong.partition("=")[0] in str(unknown.value.why)) == ("database_url", True)


def test_a_lock_that_is_kept_too_long_is_given_up_and_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.SESSION, "lock_timeout", 50)
    database = Database(url)
    with database.write() as keeps:
        keeps.exec_driver_sql("LOCK TABLE lodger_kv IN EXCLUSIVE MODE")
        with pytest.raises(Unavailable) as error, database.write() as waits:
            waits.exec_driver_sql("DELETE FROM lodger_kv")
    assert error.value.code == "database_busy"
    database.close()


def test_a_session_that_cannot_be_set_up_is_closed(
    url: str, name: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the server stops in between; a pooler connects a client even then."""
    monkeypatch.setitem(module.SESSION, "lock_timeout", "'none'")
    with pytest.raises(DBAPIError) as _kept:  # its frames hold the connection
        Database(url)
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as other:
        for _ in range(100):
            if not other.execute("SELECT 1 FROM pg_stat_activity WHERE datname = %s", [name]).fetchone():
                return
            other.execute("SELECT pg_sleep(0.05)")
    raise AssertionError("it is still open")


STATE = "SELECT current_setting('lock_timeout'), current_setting('timezone'), current_setting('jit')"


def test_a_session_of_the_server_keeps_its_settings_and_the_hot_statements(url: str) -> None:
    database = Database(url)
    for _ in range(3):
        with database.write() as connection:
            assert ready_queue.next_startable(connection) is None
            assert connection.exec_driver_sql(STATE).one() == ("10s", "UTC", "off")
            database.driver.check_constraints(connection)  # after the effects of each attempt
    with database.read() as connection:
        (hot,) = connection.exec_driver_sql("SELECT statement FROM pg_prepared_statements").scalars().all()
        assert "lodger_turns" in hot
    database.close()


def test_a_prepared_statement_survives_an_upgrade_by_another_process(url: str) -> None:
    database = Database(url)

    def ask() -> None:
        with database.write() as connection:
            ready_queue.next_startable(connection)

    ask()
    with psycopg.connect(database.url.set(drivername="postgresql").render_as_string(), autocommit=True) as other:
        other.execute("ALTER TABLE lodger_turns ALTER COLUMN startable_at TYPE numeric")
    with pytest.raises(Unavailable, match="just changed the tables") as error:  # what the engine's services try again
        ask()
    assert error.value.code == "database_busy"
    ask()
    database.close()


def test_behind_a_pooler_nothing_of_a_session_outlives_its_transaction(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that it may give every transaction another session; tests/store/test_pooler.py runs a real one."""
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 1)
    database = Database(url)
    for _ in range(10):
        with database.write() as connection:
            assert ready_queue.next_startable(connection) is None
            assert connection.exec_driver_sql(STATE).one() == ("10s", "UTC", "off")
    raw = database.engine.raw_connection()
    cursor = raw.cursor()
    left = [
        cursor.execute(f"SELECT count(*) FROM {view}").fetchone()[0]
        for view in ("pg_prepared_statements", "pg_cursors", "pg_locks WHERE locktype = 'advisory'")
    ]
    assert left == [0, 0, 0]
    assert cursor.execute(STATE).fetchone() == ("0", "Asia/Kathmandu", "on")
    raw.close()
    database.close()


@pytest.mark.parametrize("idle_s", [60.0, -1.0])
def test_connections_that_the_server_has_ended_are_replaced(
    url: str, monkeypatch: pytest.MonkeyPatch, idle_s: float
) -> None:
    """At once: a server that restarts, or takes over, answers again after a tenth of a second."""
    monkeypatch.setattr(module, "IDLE_S", idle_s)
    database = Database(url)
    with database.write() as first, database.read() as second:
        old = {each.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() for each in (first, second)}
    with psycopg.connect(database.url.set(drivername="postgresql").render_as_string(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(pid, 10000) FROM unnest(%s) AS pid", [list(old)])
    with database.write() as first, database.read() as second:
        assert ready_queue.next_startable(first) is None
        new = {each.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() for each in (first, second)}
    assert not old & new
    database.close()


def test_only_statements_of_the_hot_path_never_read_whole_tables(url: str) -> None:
    """An index of the platform's table that gives only the order of 100 rows would be read with a million of them."""
    asked, found = "SHOW enable_seqscan", []
    database, platform = Database(url), ForeignDatabase(url)
    with database.read() as connection:
        found.append(connection.exec_driver_sql(asked).scalar())
        with database.driver.time_limit(connection, 5.0, lambda: 0.0):  # of retention, which has prepared statements
            found.append(connection.exec_driver_sql(asked).scalar())
    reads = ThreadReads(database)
    found.append(asyncio.run(reads(lambda connection: connection.exec_driver_sql(asked).scalar())))
    reads.close()
    with database.read() as connection:
        laws.broken(connection)
        found.append(connection.exec_driver_sql(asked).scalar())
    for begun in (platform.read, platform.write, database.read):
        with begun() as connection:
            found.append(connection.exec_driver_sql(asked).scalar())
    assert found == ["off", "off", "on", "on", "on", "on", "off"]
    platform.close()
    database.close()


def test_a_server_whose_clock_was_set_back_is_asked_in_the_moment_of_writing(url: str) -> None:
    with Engine.open(url) as engine, engine.context.database.write() as connection:
        now = engine.context.clock.now_us
        leases.register(engine.context, connection, node_id("n1"), "n1", now())
        assert not leases.find_overdue(engine.context, connection, now()).in_future
        hour = "lease_until_us + 3600000000, seen_us = seen_us + 3600000000"
        connection.exec_driver_sql(f"UPDATE lodger_nodes SET lease_until_us = {hour}")
        assert leases.find_overdue(engine.context, connection, now()).in_future
        leases.reset_future(engine.context, connection, now)
        assert not leases.find_overdue(engine.context, connection, now()).in_future
        left = connection.exec_driver_sql("SELECT lease_until_us - seen_us, seen_us FROM lodger_nodes").one()
        assert abs(left[0] - engine.context.settings.lease_us) < 60_000_000
        assert abs(left[1] - now()) < 60_000_000


def test_a_time_limit_is_of_the_whole_block_and_of_the_pauses_in_it(server: Server, url: str) -> None:
    database, elapsed = Database(url), [0.0]

    def limited(seconds: float, *steps: float) -> list[object]:
        found, elapsed[0] = [], 0.0
        with database.write() as connection, database.driver.time_limit(connection, seconds, lambda: elapsed[0]):
            for elapsed[0] in steps:
                found.append(connection.exec_driver_sql("SHOW statement_timeout").scalar())
            backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            with psycopg.connect(server.conninfo("postgres"), autocommit=True) as other:
                while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [backend]).fetchone():
                    if seconds > 1:
                        return found
            # The server has ended the transaction of a process that stood still.
            connection.exec_driver_sql("SELECT 1")
        raise AssertionError

    assert limited(100.0, 0, 5, 75, 99) == ["100s", "100s", "25s", "1s"]
    with pytest.raises(StatementTimeout):
        limited(100.0, 0, 101)
    with pytest.raises(Unavailable, match="idle for too long"):
        limited(0.01, 0)
    database.close()

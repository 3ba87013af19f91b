"""Commit watchers see every commit of any process, and nothing else."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import Connection, text
from tests.store.bench import OK, Bench

from lodger.engine.effects.finished import Finished
from lodger.engine.node.db_executor import DbExecutor
from lodger.engine.store.connection.database import Database
from lodger.engine.store.drivers.postgresql.commits import ServerWatcher, Snapshot
from lodger.engine.store.drivers.sqlite.connections import OneWriter
from lodger.engine.store.lifecycle import leases
from lodger.engine.store.schema.nodes import HEARTBEAT, nodes
from lodger.engine.vault.keyring import Keyring
from lodger.sandbox.outcome import Outcome

MARK = "UPDATE lodger_tenants SET name = name || '!'"


def write_mark(database: Database) -> None:
    """Commit a change."""
    with database.write() as connection:
        connection.execute(text(MARK))


def comes_true(tried: Callable[[], bool]) -> None:
    """Assert that a condition holds at last: what a server does by itself, such as a vacuum, commits too."""
    assert any(tried() for _ in range(20))


def watcher_of(database: Database) -> OneWriter | ServerWatcher:
    watcher = database.file_watcher() or database.server_watcher()
    assert isinstance(watcher, OneWriter | ServerWatcher)
    return watcher


def test_every_commit_is_seen_and_nothing_else(bench: Bench, url: str, kind: str) -> None:
    bench.tenant()
    database = bench.engine.context.database
    watcher = watcher_of(database)

    def read() -> bool:
        before = watcher.version()
        with database.read() as connection:
            connection.execute(text("SELECT * FROM lodger_tenants")).all()
        return watcher.version() == before

    comes_true(read)
    seen = [watcher.version()]
    if kind == "postgresql":
        write_mark(database)
        seen.append(watcher.version())
    other = Database(url)
    for _ in range(2):
        write_mark(other)
        seen.append(watcher.version())
    if isinstance(watcher, OneWriter):
        write_mark(database)
        assert watcher.version() == seen[-1], "what it writes itself is counted apart"
        with database.write():
            assert watcher.version() == seen[-1]
        with pytest.raises(ZeroDivisionError), database.write():
            raise ZeroDivisionError
        # Its connection is another one now: what was committed in between cannot be told.
        seen.append(watcher.version())
        for _ in range(2):
            write_mark(other)
            with database.write():
                # It does not wait for the transaction, which has looked at its begin.
                seen.append(watcher.version())
            assert watcher.version() == seen[-1]
    assert len(set(seen)) == len(seen)
    other.close()
    watcher.close() if isinstance(watcher, ServerWatcher) else database.close()


def test_what_is_begun_before_a_look_and_ends_after_it_is_seen(bench: Bench, kind: str) -> None:
    if kind == "sqlite":
        pytest.skip("SQLite has one writer, and shows nothing of it before the end")
    bench.tenant()
    database = bench.engine.context.database
    watcher = watcher_of(database)
    assert isinstance(watcher, ServerWatcher)

    def two() -> bool:
        with database.write() as first, database.write() as second:
            first.execute(text("SELECT pg_current_xact_id()"))
            second.execute(text("SELECT pg_current_xact_id()"))
            begun = watcher.version()
            still = watcher.version()
            second.commit()
            between = watcher.version()
            assert between != begun
        assert watcher.version() != between, "the one that began first has ended last"
        return begun == still

    comes_true(two)
    watcher.close()


def test_what_is_to_be_overlooked_is_alone(bench: Bench, kind: str) -> None:
    if kind == "sqlite":
        pytest.skip("SQLite does not number transactions")
    bench.tenant()
    database = bench.engine.context.database
    watcher = watcher_of(database)
    assert isinstance(watcher, ServerWatcher)

    def overlooked(others: int) -> bool:
        before = watcher.version()
        with database.write() as connection:
            connection.execute(text(MARK))
            watcher.overlook(connection)
            midst = watcher.version()
        for _ in range(others):
            write_mark(database)
        return before == midst == watcher.version()

    for _ in range(3):
        comes_true(lambda: overlooked(0))
        assert not overlooked(1)
    watcher.close()


def test_heartbeats_of_other_nodes_are_overlooked(bench: Bench, kind: str) -> None:
    """Otherwise each of many idle nodes would look at the ledger after each heartbeat of each other."""
    if kind == "sqlite":
        pytest.skip("a file has no more than a number")
    leases_of = [bench.lease(name) for name in ("n1", "n2", "n3")]
    engine = bench.engine
    watcher = watcher_of(engine.context.database)
    assert isinstance(watcher, ServerWatcher)

    def beat(*before_it: str) -> bool:
        """Whether the watcher says that there is nothing new."""
        before = watcher.version()
        for change in before_it:
            with engine.context.database.write() as connection:
                connection.exec_driver_sql(change)
        for lease in leases_of:
            with engine.context.database.write() as connection:
                assert leases.renew(engine.context, connection, lease, bench.clock.us)
        return watcher.version() == before

    pause, resume = (f"UPDATE lodger_nodes SET paused_us = {value} WHERE name = 'n2'" for value in ("1", "NULL"))
    for change in ((MARK,), (pause,), (resume,), (pause, resume), ("UPDATE lodger_nodes SET labels = '{\"a\", NULL'",)):
        comes_true(beat)
        assert not beat(*change)
    comes_true(beat)
    watcher.close()


def test_a_heartbeat_is_known_by_half_of_its_transactions_number() -> None:
    before, after = Snapshot.of("4294967300:4294967300:"), Snapshot.of("4294967302:4294967302:")
    assert not after.sees_beyond(before, (), {4, 5})
    assert not after.sees_beyond(before, {4294967300}, {5})
    assert after.sees_beyond(before, (), {4})


def test_a_replica_that_takes_over_is_another_server_whatever_its_numbers() -> None:
    """It was two transactions behind, and two others have ended there since: its snapshot looks as if nothing had happened."""
    answers = [("100:100:", day, []) for day in ("Monday", "Monday", "Tuesday", "Tuesday")]

    class Connection:
        def execute(self, _question: str) -> "Connection":
            return self

        def fetchone(self) -> tuple[str, str, list[list[str]]]:
            return answers.pop(0)

        def close(self) -> None:
            pass

    watcher = ServerWatcher(Connection, nodes, HEARTBEAT)
    assert [watcher.version() for _ in range(4)] == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("before", "after", "own", "news"),
    [
        ("100:100:", "100:100:", (), False),
        ("100:100:", "101:101:", (), True),
        ("100:100:", "101:101:", (100,), False),
        ("100:102:100", "102:102:", (), True),
        ("100:102:100", "102:102:", (100,), False),
        ("100:102:100", "100:103:100", (102,), False),
        ("100:100:", "100:102:100", (101,), False),
        ("100:100:", "100:102:100", (100,), True),
        ("100:100:", "90:90:", (), True),
        ("100:100:", "4000000000:4000000000:", (), True),
    ],
)
def test_a_snapshot_sees_what_another_does_not(before: str, after: str, own: tuple[int, ...], news: bool) -> None:
    assert Snapshot.of(after).sees_beyond(Snapshot.of(before), own) is news


async def test_what_stands_is_asked_once_until_somebody_commits(bench: Bench) -> None:
    bench.tenant()
    database, asked = bench.engine.context.database, []

    def ask(connection: Connection) -> str:
        asked.append(1)
        return str(connection.scalar(text("SELECT max(name) FROM lodger_tenants WHERE id = 'acme'")))

    db = DbExecutor(database, 6.0)
    assert db.sees_commits == (database.driver.name == "sqlite")
    assert await db.cached_read("name", ask) == await db.cached_read("name", ask)
    assert len(asked) == (1 if db.sees_commits else 2), "while nobody can tell it is asked each time"
    asked.clear()
    await db.poll_version(60)
    assert db.sees_commits
    first = await db.cached_read("name", ask)
    assert await db.cached_read("name", ask) == first
    write_mark(database)
    assert await db.cached_read("name", ask) == first + "!", "what this process writes is known without a look"
    assert await db.cached_read(("name", "other"), ask) == first + "!"
    assert len(asked) == (3 if db.polls else 2)
    db.close()


def test_what_is_plain_is_one_run_without_effects(bench: Bench, kind: str) -> None:
    """After anything else the services of a node have something to look at."""
    if kind == "postgresql":
        pytest.skip("a server tells of every commit")
    bench.tenant()
    bench.schedule(overlap="cancel_running")
    failed = replace(OK, outcome=Outcome.SCRIPT_ERROR)
    shown = replace(OK, effects=({"effect": "emit"},))

    def ticked() -> list[bool]:
        bench.clock.advance(60)
        return [each.is_plain for each in bench.tick()]

    def ended(finished: Finished) -> bool:
        return bench.commit(*bench.claim(), finished=finished).is_plain

    assert (ticked(), ended(OK)) == ([True], True)
    assert (ticked(), ended(shown)) == ([True], False)
    assert (ticked(), ended(failed)) == ([True], False)
    assert (ticked(), len(bench.claim())) == ([True], 1)
    assert (ticked(), ended(OK)) == ([False], True), "the run that it has ended must be stopped"
    bench.clock.advance(180)
    assert [each.is_plain for each in bench.tick()] == [False], "some slots were missed"
    ended(OK)
    Keyring(bench.engine.context.settings.secret_keys).add()
    bench.engine.webhooks.put("acme", "hook", "https://example.com/in")
    assert (ticked(), ended(OK)) == ([True], False), "the webhook waits to be sent"

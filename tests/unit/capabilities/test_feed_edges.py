"""The edges of the feed: what is forgotten, put back, late, held back, or none of the reader's business."""

from threading import Thread
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.capabilities.feeding import ask, parcels, read, reader_attempt, write
from tests.unit.data.shop import NOW_US, Shop

from lodger.engine.core.access.grants import parse
from lodger.engine.data.changes import feed
from lodger.engine.store.schema.feeds import changes as changes_table


def test_what_retention_has_taken_is_told_and_not_skipped(shop: Shop) -> None:
    write(shop)
    assert len(read(shop)) == 1
    write(shop)
    with shop.engine.begin() as connection:
        assert feed.forget(connection, NOW_US + 1) == 2
    code, message = ask(reader_attempt(shop), "db.changes", set="orders")
    assert code == "changes_forgotten"
    assert 'from: "start"' in message
    write(shop)
    assert len(read(shop, **{"from": "start"})) == 1
    assert read(shop) == []
    assert read(shop, tenant="two") == [], "who has lost nothing is told nothing"


def test_what_was_read_in_time_may_be_taken(shop: Shop) -> None:
    write(shop)
    assert len(read(shop)) == 1
    with shop.engine.begin() as connection:
        feed.forget(connection, NOW_US + 1)
    write(shop)
    assert len(read(shop)) == 1


def test_that_nothing_is_old_is_seen_without_reading_all(shop: Shop, kind: str) -> None:
    """Every quarter of a minute, by the one thread that writes."""
    if kind == "postgresql":
        pytest.skip("it counts no steps")
    change = {"xid": 0, "source": "table:orders", "owner": "one", "key": "k", "kind": "update", "at_us": NOW_US}
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    with shop.engine.begin() as connection:
        connection.execute(sa.insert(changes_table), [change] * 20_000)
        raw: Any = connection.connection.driver_connection
        raw.set_progress_handler(step, 100)
        assert feed.forget(connection, NOW_US) == 0
        raw.set_progress_handler(None, 0)
        assert 0 < steps < 20_000 * 6 / 100 / 2, "two for each row at least, were all of them read"
        assert feed.forget(connection, NOW_US + 1) == 1000


def test_a_database_that_was_put_back_is_noticed(shop: Shop, kind: str) -> None:
    if kind == "sqlite":
        pytest.skip("a file of SQLite goes back with its cursors")
    write(shop)
    assert len(read(shop)) == 1
    with shop.engine.begin() as connection:
        connection.execute(sa.text("UPDATE lodger_cursors SET xid = xid + 1000000"))
    assert ask(reader_attempt(shop), "db.changes", set="orders")[0] == "changes_rewound"


def test_late_committers_lose_nothing(shop: Shop, kind: str) -> None:
    """Number 1 is taken first and committed last: read by number alone it would be passed by for ever."""
    if kind == "sqlite":
        pytest.skip("SQLite has one writer: nobody can be late")
    with shop.engine.connect() as late, late.begin() as transaction:
        feed.record(late, "table:orders", "one", [("1", "update")], NOW_US)
        holder = late.scalar(sa.text("SELECT pg_backend_pid()"))  # sends the row: an answer is waited for
        with shop.engine.begin() as early:
            feed.record(early, "table:orders", "one", [("2", "update")], NOW_US)
        with shop.engine.connect() as connection:
            visible = connection.execute(sa.select(changes_table.c.key).order_by(changes_table.c.seq)).scalars().all()
            assert visible == ["2"], "by number alone, the reader stands behind 2 now and never sees 1"
            held = feed.horizon(connection)
            assert (held.waiting, held.held_us) == (1, NOW_US)
            assert held.holder == holder
            assert held.since_us is not None
        assert read(shop) == [], "what could still be overtaken is not read"
        transaction.commit()
    assert read(shop) == [(1, "update"), (2, "update")]
    with shop.engine.connect() as connection:
        assert feed.horizon(connection) == feed.FeedLag()


def test_a_transaction_that_only_reads_holds_nothing_back(shop: Shop, kind: str) -> None:
    if kind == "sqlite":
        pytest.skip("SQLite has one writer: nothing is held back")
    with shop.engine.connect() as reader, reader.begin():
        reader.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        reader.execute(sa.text("SELECT count(*) FROM orders"))
        write(shop)
        assert len(read(shop)) == 1


def test_many_writers_at_once_lose_nothing_and_nothing_comes_twice(shop: Shop, kind: str) -> None:
    if kind == "sqlite":
        pytest.skip("in memory there is one connection; tests/e2e/test_changes.py has processes")

    def writer(number: int) -> None:
        for turn in range(40):
            with shop.engine.begin() as connection:
                feed.record(connection, "table:orders", "one", [(str(number * 1000 + turn), "update")], NOW_US)
                if turn % 3 == number % 3:
                    connection.execute(sa.text("SELECT pg_sleep(0.005)"))

    writers = [Thread(target=writer, args=(number,)) for number in range(6)]
    for thread in writers:
        thread.start()
    seen: list[Any] = []
    while any(thread.is_alive() for thread in writers):
        seen += read(shop, limit=20)
    for thread in writers:
        thread.join()
    while more := read(shop, limit=500):
        seen += more
    assert sorted(key for key, _ in seen) == sorted(n * 1000 + turn for n in range(6) for turn in range(40))


def test_without_the_right_to_read_a_set_its_changes_are_denied(shop: Shop) -> None:
    attempt = shop.attempt(claim={"grants": parse(["collections"])})
    assert ask(attempt, "db.changes", set="orders")[0] == "denied"
    assert ask(attempt, "db.changes", set="things")["changes"] == []


def test_numbers_of_others_are_not_told(shop: Shop) -> None:
    """A script sees ids, kinds and times of its own rows; a number that counts all tenants' changes is none of its business."""
    write(shop)
    (change,) = ask(reader_attempt(shop), "db.changes", set="orders")["changes"]
    assert set(change) == {"id", "kind", "at"}


def test_a_burst_of_one_statement_is_seen_whole(shop: Shop, kind: str) -> None:
    parcels(shop, feed="trigger")
    with shop.engine.begin() as connection:
        if kind == "postgresql":
            connection.execute(sa.text("INSERT INTO parcels SELECT n, 'one', 'a' FROM generate_series(1, 20000) n"))
        else:
            connection.execute(
                sa.text(
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
                    "INSERT INTO parcels SELECT i, 'one', 'a' FROM n"
                )
            )
    with shop.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(changes_table)) == 20_000
    assert len(read(shop, "parcels", limit=10_000)) == 500

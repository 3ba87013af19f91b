"""The feed of changes: every way by which a change comes in, each read once, and no place moved but by a commit."""

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session as OrmSession
from tests.unit.capabilities.feeding import Parcel, ask, made, parcels, read, reader_attempt, settle, write
from tests.unit.data.shop import NOW_US, Shop, order, orders

from lodger.engine.core.clock import SystemClock
from lodger.engine.core.errors import InputError
from lodger.engine.data.changes import external_writes, feed, triggers
from lodger.engine.effects import commit
from lodger.engine.effects.effect import has_unread_changes
from lodger.engine.store.schema.feeds import changes as changes_table


def test_what_goes_through_lodger_is_read_once_and_by_its_tenant(shop: Shop) -> None:
    write(shop)
    write(shop, "two")
    write(shop)
    mine = [row["id"] for row in shop.rows(orders, org_id="one")]
    assert read(shop) == [(key, "insert") for key in mine]
    assert read(shop) == []
    assert read(shop, tenant="two") == [(shop.rows(orders, org_id="two")[0]["id"], "insert")]


def test_a_run_that_fails_has_read_nothing(shop: Shop) -> None:
    write(shop)
    first = read(shop, keep=False)
    assert len(first) == 1
    assert read(shop, keep=False) == first
    assert read(shop) == first
    assert read(shop) == []


def test_a_change_is_what_the_whole_run_made_of_a_row(shop: Shop) -> None:
    shop.add(orders, *(order("one", number) for number in (1, 2, 3)))
    attempt = shop.attempt()
    ask(attempt, "db.update", set="orders", id=1, changes={"state": "x"})
    ask(attempt, "db.increment", set="orders", id=1, amounts={"items": 1})
    ask(attempt, "db.update", set="orders", id=2, changes={"state": "x"})
    ask(attempt, "db.delete", set="orders", id=2)
    gone = ask(attempt, "db.insert", set="orders", values={"state": "x", "items": 1})
    ask(attempt, "db.delete", set="orders", id=gone["id"])
    fresh = ask(attempt, "db.insert", set="orders", values={"state": "x", "items": 1})
    ask(attempt, "db.update", set="orders", id=fresh["id"], changes={"state": "y"})
    settle(shop, attempt)
    assert read(shop) == [(1, "update"), (2, "delete"), (made(shop)[-1], "insert")]


@pytest.mark.parametrize(
    ("kinds", "net"),
    [
        (["insert"], "insert"), (["insert", "update"], "insert"), (["insert", "delete"], "nothing"),
        (["insert", "delete", "insert"], "insert"), (["update", "delete"], "delete"), (["delete", "insert"], "update"),
        (["delete", "insert", "delete"], "delete"), (["update", "update"], "update"),
    ],
)  # fmt: skip
def test_nets(kinds: list[str], net: str) -> None:
    state: str | None = None
    for kind in kinds:
        state = feed.net(state, kind)
    assert state == net


def test_batches_and_what_is_left(shop: Shop) -> None:
    attempt = shop.attempt(budgets={"rows_written": 10_000})
    for number in range(25):
        ask(attempt, "db.insert", set="things", values={"id": f"t{number:02}"})
    settle(shop, attempt)
    seen = []
    for expected in ([10, True], [10, True], [5, False]):
        reader = reader_attempt(shop)
        found = ask(reader, "db.changes", set="things", limit=10)
        assert [len(found["changes"]), found["more"]] == expected
        assert has_unread_changes(reader.journal.effects) is expected[1]
        settle(shop, reader)
        seen += [each["id"] for each in found["changes"]]
    assert seen == [f"t{number:02}" for number in range(25)]


def test_within_a_run_reading_goes_on_where_it_was(shop: Shop) -> None:
    for _ in range(3):
        write(shop)
    attempt = reader_attempt(shop)
    first = ask(attempt, "db.changes", set="orders", limit=2)["changes"]
    second = ask(attempt, "db.changes", set="orders", limit=2)["changes"]
    assert [each["id"] for each in first + second] == made(shop)
    settle(shop, attempt)
    assert read(shop) == []


def test_two_runs_that_read_the_same_changes_do_not_both_succeed(shop: Shop) -> None:
    write(shop)
    one, two = reader_attempt(shop), reader_attempt(shop)
    for attempt in (one, two):
        assert len(ask(attempt, "db.changes", set="orders", line="main.js:2")["changes"]) == 1
    settle(shop, one)
    with pytest.raises(commit.ConflictFound) as refused:
        settle(shop, two)
    assert refused.value.line == 2


def test_each_schedule_has_its_own_place(shop: Shop) -> None:
    write(shop)
    assert len(read(shop)) == 1
    for other in ("s2", None):
        assert len(ask(reader_attempt(shop, schedule=other), "db.changes", set="orders")["changes"]) == 1


@pytest.mark.parametrize("by", ["reported", "trigger"])
def test_a_schedule_is_not_told_of_what_it_did_itself(shop: Shop, by: str) -> None:
    """It would wake itself for ever. What it did is passed by, not looked at again and again."""
    parcels(shop, feed=by, write=["state"])
    with shop.engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO parcels (id, org, state) VALUES (1, 'one', 'a'), (2, 'one', 'a')"))
        if by == "reported":
            external_writes.record_changed(
                shop.datasets, SystemClock(), shop.engine, connection, "parcels", "one", [1, 2], "insert"
            )
    attempt = reader_attempt(shop)
    assert len(ask(attempt, "db.changes", set="parcels")["changes"]) == 2
    ask(attempt, "db.update", set="parcels", id=1, changes={"state": "b"})
    settle(shop, attempt)
    again = reader_attempt(shop)
    assert ask(again, "db.changes", set="parcels") == {"changes": [], "more": False}
    settle(shop, again)
    third = reader_attempt(shop)
    ask(third, "db.changes", set="parcels")
    assert not third.journal, "its place has moved on"
    other = ask(reader_attempt(shop, schedule="s2"), "db.changes", set="parcels")["changes"]
    assert sorted((each["id"], each["kind"]) for each in other) == [(1, "insert"), (1, "update"), (2, "insert")]


def test_many_changes_of_ones_own_before_anothers(shop: Shop) -> None:
    mine = reader_attempt(shop)
    with shop.engine.begin() as connection:
        keys = [(str(number), "update") for number in range(9000)]
        feed.record(connection, "table:orders", "one", keys, NOW_US, mine.journal.consumer)
        feed.record(connection, "table:orders", "one", [("7", "update")], NOW_US)
    seen: list[Any] = []
    for _ in range(6):
        attempt = reader_attempt(shop)
        found = ask(attempt, "db.changes", set="orders")
        seen += found["changes"]
        if attempt.journal:
            settle(shop, attempt)
        if not found["more"]:
            break
    assert [each["id"] for each in seen] == [7]


def test_beginnings(shop: Shop) -> None:
    write(shop)
    assert read(shop, **{"from": "now"}) == []
    assert read(shop) == []
    write(shop)
    assert read(shop) == [(made(shop)[1], "insert")]
    assert read(shop, **{"from": "start"}) == [(key, "insert") for key in made(shop)]
    assert ask(reader_attempt(shop), "db.changes", set="orders", **{"from": "yesterday"})[0] == "bad_request"


def test_reported_by_the_platform_in_its_own_transaction(shop: Shop) -> None:
    shop.add(orders, order("one", 1), order("one", 2))

    def report(connection: sa.Connection, *given: Any) -> None:
        external_writes.record_changed(shop.datasets, SystemClock(), shop.engine, connection, *given)

    with shop.engine.begin() as connection:
        report(connection, "orders", "one", 1)
        report(connection, orders, "one", [1, 2], "delete")
    with shop.engine.connect() as connection, connection.begin() as transaction:
        report(connection, "orders", "one", 2, "insert")
        transaction.rollback()
    assert read(shop) == [(1, "update"), (1, "delete"), (2, "delete")]
    for wrong in (("nothing", "one", 1), ("orders", "one", 1, "upsert"), ("orders", "one", None)):
        with shop.engine.begin() as connection, pytest.raises(InputError):
            report(connection, *wrong)


def test_reported_by_sessions(shop: Shop) -> None:
    parcels(shop)
    with OrmSession(shop.engine) as session:
        stop = external_writes.record_sessions(shop.datasets, SystemClock(), session)
        session.add_all([Parcel(number=1, org="one", state="a"), Parcel(number=2, org="two", state="a")])
        session.commit()
        first, second = session.get(Parcel, 1), session.get(Parcel, 2)
        assert first is not None
        assert second is not None
        first.state, second.org = "b", "one"
        session.commit()
        session.delete(first)
        session.flush()
        session.rollback()
        second.state = "c"
        session.commit()
        stop()
        second.state = "d"
        session.commit()
    first_flush, *second_flush, last = read(shop, "parcels")
    assert first_flush == (1, "insert")
    assert sorted(second_flush) == [(1, "update"), (2, "insert")]
    assert last == (2, "update")
    assert read(shop, "parcels", tenant="two") == [(2, "insert"), (2, "delete")]


@pytest.mark.parametrize("walled", [True, False])
def test_seen_by_triggers(shop: Shop, walled: bool) -> None:
    """Whatever statement makes the change, from whatever program, Lodger's own included, once each."""
    parcels(shop, feed="trigger", write=["state", "number"], allow_unique=["parcels_pkey", "", "id"])
    if not walled:
        shop.datasets.stand(None, shop.datasets.wall(None).__class__())
    with shop.engine.begin() as connection:
        assert triggers.stands(connection, shop.datasets.tables(None)[-1])
        for statement in (
            "INSERT INTO parcels (id, org, state) VALUES (1, 'one', 'a'), (2, 'two', 'a'), (3, NULL, 'a'), (4, 'one', 'a')",
            "UPDATE parcels SET state = 'b' WHERE org = 'one'",
            "UPDATE parcels SET org = 'two' WHERE id = 4",
            "UPDATE parcels SET id = 5 WHERE id = 4",
            "DELETE FROM parcels WHERE id = 5",
        ):
            connection.execute(sa.text(statement))
    attempt = shop.attempt()
    ask(attempt, "db.update", set="parcels", id=1, changes={"state": "c"})
    ask(attempt, "db.insert", set="parcels", values={"number": 9, "state": "c"})
    settle(shop, attempt)
    found = read(shop, "parcels")
    assert sorted(found[:2]) == [(1, "insert"), (4, "insert")]
    assert sorted(found[2:4]) == [(1, "update"), (4, "update")]
    assert found[4:5] == [(4, "delete")]
    assert sorted(found[5:]) == [(1, "update"), (9, "insert")]
    assert read(shop, "parcels", tenant="two") == [
        (2, "insert"), (4, "insert"), (4, "delete"), (5, "insert"), (5, "delete"),
    ]  # fmt: skip


def test_without_its_triggers_lodger_writes_down_what_it_makes(shop: Shop, kind: str) -> None:
    parcels(shop, feed="trigger", write=["state"])
    with shop.engine.begin() as connection:
        for verb in ("insert", "update", "delete"):
            name = f"lodger_changes_{verb}" + ("_parcels" if kind == "sqlite" else "")
            connection.execute(sa.text(f"DROP TRIGGER {name}" + (" ON parcels" if kind == "postgresql" else "")))
        connection.execute(sa.text("INSERT INTO parcels (id, org, state) VALUES (1, 'one', 'a')"))
    attempt = shop.attempt()
    ask(attempt, "db.update", set="parcels", id=1, changes={"state": "c"})
    settle(shop, attempt)
    assert read(shop, "parcels") == [(1, "update")]


def test_a_set_that_keeps_no_changes_says_so(shop: Shop) -> None:
    parcels(shop, feed="off", write=["state"])
    assert ask(shop.attempt(), "db.changes", set="parcels")[0] == "bad_request"
    with shop.engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO parcels (id, org, state) VALUES (1, 'one', 'a')"))
    attempt = shop.attempt()
    ask(attempt, "db.update", set="parcels", id=1, changes={"state": "c"})
    settle(shop, attempt)
    with shop.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(changes_table)) == 0


def test_reported_by_asynchronous_sessions(shop: Shop) -> None:
    """On PostgreSQL by its asynchronous driver; the sessions of another maker report nothing."""
    if shop.engine.dialect.name != "postgresql":
        pytest.skip("NOT TESTED on SQLite: it has no asynchronous driver here")
    parcels(shop)
    mine = shop.engine.url

    async def flush() -> None:
        engine = create_async_engine(mine)
        maker, other = async_sessionmaker(engine), async_sessionmaker(engine)
        stop = external_writes.record_sessions(shop.datasets, SystemClock(), maker)
        for number, made_by in enumerate((maker, other)):
            async with made_by.begin() as session:
                session.add(Parcel(number=number, org="one", state="a"))
        async with other() as session:
            also = external_writes.record_sessions(shop.datasets, SystemClock(), session)
            session.add(Parcel(number=2, org="one", state="a"))
            await session.commit()
            also()
        stop()
        async with maker.begin() as session:
            session.add(Parcel(number=3, org="one", state="a"))
        await engine.dispose()

    asyncio.run(flush())
    assert read(shop, "parcels") == [(0, "insert"), (2, "insert")]


def test_reported_on_a_connection_of_the_driver(shop: Shop) -> None:
    """As Django's are: in its transaction; outside of one it is refused, for the change is committed already."""
    shop.add(orders, order("one", 1))
    with shop.engine.connect() as lent:
        raw = lent.connection.dbapi_connection
        for key, keep in ((1, False), (2, True)):
            external_writes.record_changed(shop.datasets, SystemClock(), shop.engine, raw, "orders", "one", key)
            raw.commit() if keep else raw.rollback()
    assert read(shop) == [(2, "update")]
    with pytest.raises(InputError) as refused:
        external_writes.record_changed(shop.datasets, SystemClock(), shop.engine, object(), "orders", "one", 1)
    assert refused.value.code == "connection_unknown"

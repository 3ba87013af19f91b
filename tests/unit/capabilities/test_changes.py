"""The feed of changes: every way by which a change comes in, each read once, and no place moved but by a commit."""

import asyncio
import json
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.orm import Session as OrmSession
from tests.unit.data.shop import NOW_US, Shop, order, orders

from lodger.engine.clock import SystemClock
from lodger.engine.data import feed, reporting, triggers
from lodger.engine.effects import commit
from lodger.engine.effects.effect import lags
from lodger.engine.errors import InputError
from lodger.engine.ledger.schema.feeds import changes as changes_table
from lodger.engine.node.attempt import Attempt
from lodger.engine.policy.grants import parse


def ask(attempt: Attempt, name: str, **arguments: Any) -> Any:
    reply = asyncio.run(attempt.call(name, json.dumps(arguments)))
    body = json.loads(reply.json)
    return body if reply.ok else (body["code"], body["message"])


def settle(shop: Shop, attempt: Attempt) -> None:
    with shop.engine.begin() as connection:
        commit.apply(connection, attempt.journal, now_us=NOW_US)


def reading(shop: Shop, tenant: str = "one", schedule: str | None = "reader") -> Attempt:
    claim = shop.attempt(tenant).claim
    return Attempt(replace(claim, schedule_id=schedule), shop.read, shop.datasets, now_us=NOW_US)


def read(shop: Shop, name: str = "orders", tenant: str = "one", *, keep: bool = True, **options: Any) -> list[Any]:
    """Read as a run of another schedule does; keep what it has read, or let the run fail."""
    attempt = reading(shop, tenant)
    found = ask(attempt, "db.changes", set=name, **options)
    if keep and attempt.journal:
        settle(shop, attempt)
    return [(each["id"], each["kind"]) for each in found["changes"]]


def write(shop: Shop, tenant: str = "one", **more: Any) -> Any:
    attempt = shop.attempt(tenant)
    made = ask(attempt, "db.insert", set="orders", values={"state": "new", "items": 1} | more)
    settle(shop, attempt)
    return made


def made(shop: Shop) -> list[int]:
    return [row["id"] for row in shop.rows(orders)]


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
        reader = reading(shop)
        found = ask(reader, "db.changes", set="things", limit=10)
        assert [len(found["changes"]), found["more"]] == expected
        assert lags(reader.journal.effects) is expected[1]
        settle(shop, reader)
        seen += [each["id"] for each in found["changes"]]
    assert seen == [f"t{number:02}" for number in range(25)]


def test_within_a_run_reading_goes_on_where_it_was(shop: Shop) -> None:
    for _ in range(3):
        write(shop)
    attempt = reading(shop)
    first = ask(attempt, "db.changes", set="orders", limit=2)["changes"]
    second = ask(attempt, "db.changes", set="orders", limit=2)["changes"]
    assert [each["id"] for each in first + second] == made(shop)
    settle(shop, attempt)
    assert read(shop) == []


def test_two_runs_that_read_the_same_changes_do_not_both_succeed(shop: Shop) -> None:
    write(shop)
    one, two = reading(shop), reading(shop)
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
        assert len(ask(reading(shop, schedule=other), "db.changes", set="orders")["changes"]) == 1


@pytest.mark.parametrize("by", ["reported", "trigger"])
def test_a_schedule_is_not_told_of_what_it_did_itself(shop: Shop, by: str) -> None:
    """It would wake itself for ever. What it did is passed by, not looked at again and again."""
    parcels(shop, feed=by, write=["state"])
    with shop.engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO parcels (id, org, state) VALUES (1, 'one', 'a'), (2, 'one', 'a')"))
        if by == "reported":
            reporting.record_changed(shop.datasets, SystemClock(), connection, "parcels", "one", [1, 2], "insert")
    attempt = reading(shop)
    assert len(ask(attempt, "db.changes", set="parcels")["changes"]) == 2
    ask(attempt, "db.update", set="parcels", id=1, changes={"state": "b"})
    settle(shop, attempt)
    again = reading(shop)
    assert ask(again, "db.changes", set="parcels") == {"changes": [], "more": False}
    settle(shop, again)
    third = reading(shop)
    ask(third, "db.changes", set="parcels")
    assert not third.journal, "its place has moved on"
    other = ask(reading(shop, schedule="s2"), "db.changes", set="parcels")["changes"]
    assert sorted((each["id"], each["kind"]) for each in other) == [(1, "insert"), (1, "update"), (2, "insert")]


def test_many_changes_of_ones_own_before_anothers(shop: Shop) -> None:
    mine = reading(shop)
    with shop.engine.begin() as connection:
        keys = [(str(number), "update") for number in range(9000)]
        feed.record(connection, "table:orders", "one", keys, NOW_US, mine.journal.consumer)
        feed.record(connection, "table:orders", "one", [("7", "update")], NOW_US)
    seen: list[Any] = []
    for _ in range(6):
        attempt = reading(shop)
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
    assert ask(reading(shop), "db.changes", set="orders", **{"from": "yesterday"})[0] == "bad_request"


def test_reported_by_the_platform_in_its_own_transaction(shop: Shop) -> None:
    shop.add(orders, order("one", 1), order("one", 2))
    report = lambda connection, *given: reporting.record_changed(shop.datasets, SystemClock(), connection, *given)  # noqa: E731
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


class Base(DeclarativeBase):
    pass


class Parcel(Base):
    __tablename__ = "parcels"
    number: Mapped[int] = mapped_column("id", primary_key=True, autoincrement=False)
    org: Mapped[str | None]
    state: Mapped[str]


def parcels(shop: Shop, **options: Any) -> None:
    Base.metadata.create_all(shop.engine)
    shop.datasets.expose(Parcel, tenant_column=Parcel.org, **options)
    shop.wall()


def test_reported_by_sessions(shop: Shop) -> None:
    parcels(shop)
    with OrmSession(shop.engine) as session:
        stop = reporting.record_sessions(shop.datasets, SystemClock(), session)
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


def test_what_retention_has_taken_is_told_and_not_skipped(shop: Shop) -> None:
    write(shop)
    assert len(read(shop)) == 1
    write(shop)
    with shop.engine.begin() as connection:
        assert feed.forget(connection, NOW_US + 1) == 2
    code, message = ask(reading(shop), "db.changes", set="orders")
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


def test_a_database_that_was_put_back_is_noticed(shop: Shop, kind: str) -> None:
    if kind == "sqlite":
        pytest.skip("a file of SQLite goes back with its cursors")
    write(shop)
    assert len(read(shop)) == 1
    with shop.engine.begin() as connection:
        connection.execute(sa.text("UPDATE lodger_cursors SET xid = xid + 1000000"))
    assert ask(reading(shop), "db.changes", set="orders")[0] == "changes_rewound"


def test_late_committers_lose_nothing(shop: Shop, kind: str) -> None:
    """Number 1 is taken first and committed last: read by number alone it would be passed by for ever."""
    if kind == "sqlite":
        pytest.skip("SQLite has one writer: nobody can be late")
    with shop.engine.connect() as late, late.begin() as transaction:
        feed.record(late, "table:orders", "one", [("1", "update")], NOW_US)
        with shop.engine.begin() as early:
            feed.record(early, "table:orders", "one", [("2", "update")], NOW_US)
        with shop.engine.connect() as connection:
            visible = connection.execute(sa.select(changes_table.c.key).order_by(changes_table.c.seq)).scalars().all()
            assert visible == ["2"], "by number alone, the reader stands behind 2 now and never sees 1"
            held = feed.horizon(connection)
            assert (held.waiting, held.held_us) == (1, NOW_US)
            assert held.holder == late.scalar(sa.text("SELECT pg_backend_pid()"))
            assert held.since_us is not None
        assert read(shop) == [], "what could still be overtaken is not read"
        transaction.commit()
    assert read(shop) == [(1, "update"), (2, "update")]
    with shop.engine.connect() as connection:
        assert feed.horizon(connection) == feed.Horizon()


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
    (change,) = ask(reading(shop), "db.changes", set="orders")["changes"]
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

"""A journal is applied whole or not at all: faults between any two statements, on the ledger's real database file."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.data.shop import ALL, NOW_US, count_on, customers, orders, platform

from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.execution import Claim
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.effects import commit
from lodger.engine.effects.commit_errors import EffectRefused
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.connection.database import Database
from lodger.engine.store.schema.script_data import documents, kv, outbox


class Cut(Exception):
    """The injected fault."""


class Book:
    """A ledger file with the platform's tables in it."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        with self.database.write() as connection:
            platform.create_all(connection)
            connection.execute(customers.insert().values(id=1, org_id="one", email="a@one.example"))
            for number in (1, 2, 3):
                connection.execute(orders.insert().values(id=number, org_id="one", state="open", items=number))
            for table in (customers, orders):
                count_on(connection, table)
        self.datasets = Datasets()
        self.datasets.expose(customers, tenant_column="org_id", write=["email"])
        self.datasets.expose(
            orders,
            tenant_column="org_id",
            read=["id", "state", "items", "customer_id"],
            write=["state", "items", "customer_id"],
        )

    async def read(self, work: Any) -> Any:
        with self.database.read() as connection:
            return work(connection)

    def attempt(self, number: int = 1) -> Attempt:
        claim = Claim(
            action_id=f"018f0000-0000-7000-8000-{number:012}", tenant_id="one", schedule_id="s1", script_name="t", script_version=1,
            modules={}, attempt=1, step=0, lease_epoch=1, origin="slot", slot_us=NOW_US, due_us=NOW_US, started_us=NOW_US,
            grants=ALL,
        )  # fmt: skip
        return Attempt(claim, self.read, self.datasets, now_us=NOW_US, fetch_state=FetchState.of(claim))

    def state(self) -> list[Any]:
        shown = sa.select(orders.c.id, orders.c.state, orders.c["items"], orders.c.customer_id)
        with self.database.read() as connection:
            found = [shown, *(sa.select(table) for table in (customers, documents, kv, outbox))]
            return [[tuple(row) for row in connection.execute(each)] for each in found]


@pytest.fixture
def book(url: str) -> Iterator[Book]:
    made = Book(url)
    yield made
    made.database.close()


def ask(attempt: Attempt, name: str, **arguments: Any) -> Any:
    reply = asyncio.run(attempt.call(name, json.dumps(arguments)))
    assert reply.ok, reply.json
    return json.loads(reply.json)


def busy(book: Book, number: int = 1) -> Attempt:
    """Return an attempt with one effect of every kind."""
    attempt = book.attempt(number)
    ask(attempt, "db.find", set="orders")
    customer = ask(attempt, "db.insert", set="customers", values={"email": f"new{number}@one.example"})
    ask(attempt, "db.insert", set="orders", values={"state": "new", "items": 1, "customer_id": customer["id"]})
    ask(attempt, "db.increment", set="orders", id=2, amounts={"items": 5})
    ask(attempt, "db.update", set="orders", id=1, changes={"state": "done"})
    ask(attempt, "db.delete", set="orders", id=3)
    ask(attempt, "db.insert", set="notes", values={"id": f"n{number}", "text": "x"})
    ask(attempt, "db.update", set="notes", id=f"n{number}", changes={"text": "y"})
    ask(attempt, "kv.set", key="k", value=1)
    ask(attempt, "kv.add", key="n", amount=1)
    ask(attempt, "mail.send", to="x@example.com", subject="s", text="t")
    return attempt


def statements(book: Book, attempt: Attempt) -> int:
    """Count what the commit says to the database, and undo it."""
    said: list[str] = []

    def hear(_connection: Any, _cursor: Any, text: str, *_: Any) -> None:
        said.append(text)

    sa.event.listen(book.database.engine, "before_cursor_execute", hear)
    try:
        with book.database.engine.connect() as connection, connection.begin() as transaction:
            commit.apply(connection, attempt.journal, now_us=NOW_US)
            transaction.rollback()
    finally:
        sa.event.remove(book.database.engine, "before_cursor_execute", hear)
    return len(said)


def test_a_fault_between_any_two_statements_leaves_nothing(book: Book) -> None:
    attempt = busy(book)
    statements(book, attempt)  # what is asked once for each database is known after this
    before, total = book.state(), statements(book, attempt)
    assert total > 12
    for place in range(total):
        left = place

        def cut(*_: Any) -> None:
            nonlocal left
            if left == 0:
                raise Cut
            left -= 1

        sa.event.listen(book.database.engine, "before_cursor_execute", cut)
        try:
            with pytest.raises(Cut), book.database.write() as connection:
                commit.apply(connection, attempt.journal, now_us=NOW_US)
        finally:
            sa.event.remove(book.database.engine, "before_cursor_execute", cut)
        assert book.state() == before, place
    with book.database.write() as connection:
        commit.apply(connection, attempt.journal, now_us=NOW_US)
    after = book.state()
    assert {row[1:3] for row in after[0]} == {("done", 1), ("open", 7), ("new", 1)}
    assert [len(table) for table in after] == [3, 2, 1, 2, 1]


def test_a_refused_journal_takes_back_itself_and_not_its_neighbours(book: Book) -> None:
    """The committer applies many attempts in one transaction: one refused changes nothing for the others."""
    good, bad, other = busy(book, 1), book.attempt(2), book.attempt(3)
    ask(bad, "db.update", set="orders", id=2, changes={"state": "bad"})
    ask(bad, "db.increment", set="orders", id=2, amounts={"items": -100}, line="main.js:9")
    ask(other, "kv.add", key="n", amount=10)
    with book.database.write() as connection:
        commit.apply(connection, good.journal, now_us=NOW_US)
        with pytest.raises(EffectRefused) as refused:
            commit.apply(connection, bad.journal, now_us=NOW_US)
        commit.apply(connection, other.journal, now_us=NOW_US)
    assert (refused.value.code, refused.value.index, refused.value.file, refused.value.line) == (
        "constraint",
        1,
        "main.js",
        9,
    )
    assert "items" not in refused.value.message.replace("orders", "")
    assert not any(word in refused.value.message for word in ("CHECK", "sqlite", "UNIQUE", "SELECT"))
    state = book.state()
    assert [row[1] for row in state[0] if row[0] == 2] == ["open"]
    assert sorted(row[3] for row in state[3]) == ["1", "11"]


def test_a_document_whose_id_exists_is_refused_by_its_id(book: Book) -> None:
    first, second = book.attempt(1), book.attempt(2)
    for attempt in (first, second):
        ask(attempt, "db.insert", set="things", values={"id": "t1", "a": 1}, line="main.js:4")
    with book.database.write() as connection:
        commit.apply(connection, first.journal, now_us=NOW_US)
        with pytest.raises(EffectRefused, match="things has a document with the id 't1' already") as refused:
            commit.apply(connection, second.journal, now_us=NOW_US)
    assert (refused.value.code, refused.value.line) == ("constraint", 4)


def test_one_mail_of_one_place_is_queued_once(book: Book) -> None:
    """Even when a committer that lost its answer applies a journal again, the outbox holds each mail once."""
    attempt = book.attempt()
    ask(attempt, "mail.send", to="x@example.com", subject="s", text="t")
    for _ in range(2):
        with book.database.write() as connection:
            try:
                commit.apply(connection, attempt.journal, now_us=NOW_US)
            except EffectRefused:
                continue
    assert len(book.state()[4]) == 1


def test_effects_are_applied_in_the_order_of_the_calls(book: Book) -> None:
    """A name that is unique can move from one row to another inside a run."""
    attempt = book.attempt()
    ask(attempt, "db.update", set="customers", id=1, changes={"email": "old@one.example"})
    ask(attempt, "db.insert", set="customers", values={"email": "a@one.example"})
    with book.database.write() as connection:
        commit.apply(connection, attempt.journal, now_us=NOW_US)
    assert sorted(row[2] for row in book.state()[1]) == ["a@one.example", "old@one.example"]


def test_a_row_that_vanished_is_a_conflict(book: Book) -> None:
    one, two = book.attempt(1), book.attempt(2)
    ask(one, "db.delete", set="orders", id=1)
    ask(two, "db.increment", set="orders", id=1, amounts={"items": 1})
    with book.database.write() as connection:
        commit.apply(connection, one.journal, now_us=NOW_US)
        with pytest.raises(commit.ConflictFound):
            commit.apply(connection, two.journal, now_us=NOW_US)


def test_a_checked_row_must_hold_though_it_is_not_written(book: Book) -> None:
    one, two, free = book.attempt(1), book.attempt(2), book.attempt(3)
    ask(one, "db.update", set="orders", id=1, changes={"state": "x"})
    ask(two, "db.get", set="orders", id=1, check=True)
    ask(free, "db.get", set="orders", id=1)
    for attempt in (two, free):
        ask(attempt, "kv.add", key="n", amount=1)
    with book.database.write() as connection:
        commit.apply(connection, one.journal, now_us=NOW_US)
        with pytest.raises(commit.ConflictFound):
            commit.apply(connection, two.journal, now_us=NOW_US)
        commit.apply(connection, free.journal, now_us=NOW_US)

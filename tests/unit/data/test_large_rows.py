"""Rows of any size: what a question reads of them is bounded, and pages are complete all the same."""

import asyncio
import json
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.capabilities.feeding import ask, settle
from tests.unit.data.shop import Shop

from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.data.filtering.parsing import And, read_order
from lodger.engine.data.reading.reader import Reader, is_wide
from lodger.engine.data.sets.guard import isolated_query
from lodger.engine.data.sets.scope import Scope

MANY, LARGE = 12, 700_000
library = sa.Table(
    "books",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("org", sa.String(9), nullable=False),
    sa.Column("place", sa.Integer),
    sa.Column("text", sa.Text),
    sa.Column("scan", sa.LargeBinary),
    sa.Column("notes", sa.JSON),
    sa.Column("next_id", sa.ForeignKey("books.id")),
)


@pytest.fixture(params=["text", "scan", "notes"])
def shop(bare: Shop, request: pytest.FixtureRequest) -> Shop:
    """Books that are large in one of their columns; every third has next to nothing in it."""
    large: dict[str, Any] = {"text": "é" * (LARGE // 2), "scan": b"\0" * LARGE, "notes": ["x" * LARGE]}
    with bare.engine.begin() as connection:
        library.metadata.create_all(connection)
        for number in range(1, MANY + 1):
            value = large[request.param] if number % 3 else None
            connection.execute(library.insert().values(id=number, org="one", place=-number, **{request.param: value}))
        connection.execute(library.update().where(library.c.id > 1).values(next_id=library.c.id - 1))
    bare.datasets.expose(library, tenant_column="org", write=["place", "text", "notes"])
    bare.wall()
    return bare


def test_a_question_reads_no_more_than_it_may(shop: Shop) -> None:
    rows = shop.datasets.named("books")

    def page(maximum: int) -> tuple[list[Any], bool]:
        order = read_order(None, rows.lookup, rows.key)

        def ask(inner: sa.Connection) -> tuple[list[Any], bool]:
            return Reader(inner, Scope("one")).page(rows, And(()), order, 501, max_bytes=maximum)

        with shop.engine.connect() as connection:
            return isolated_query(ask, "one", shop.datasets, rows)(connection)

    for maximum, wanted, more in (
        (1, 2, True),
        (2 * LARGE, 2, True),
        (2 * LARGE + 2000, 4, True),
        (10**9, MANY, False),
    ):
        found, cut = page(maximum)
        assert ([row["id"] for row in found], cut) == (list(range(1, wanted + 1)), more), maximum


def test_pages_hold_every_row_once(shop: Shop) -> None:
    attempt = shop.attempt(budgets={"queries": 1000, "bytes_written": 10**9})
    for number in range(1, MANY + 1, 5):  # the journal's rows come between
        ask(attempt, "db.insert", set="books", values={"place": -number, "text": "mine"})
        ask(attempt, "db.update", set="books", id=number, changes={"place": -number - 100})
    seen: list[int] = []
    cursor = None
    for _ in range(30):
        page = ask(attempt, "db.find", set="books", order="place", limit=500, cursor=cursor)
        assert len(json.dumps(page, ensure_ascii=False).encode()) < 1024 * 1024
        seen += [row["place"] for row in page["rows"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    wanted = [-number for number in range(1, MANY + 1) if number % 5 != 1]
    wanted += [place for number in range(1, MANY + 1, 5) for place in (-number, -number - 100)]
    assert seen == sorted(wanted)


def test_what_is_chosen_or_comes_along_is_refused_when_it_is_too_much(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lodger.engine.capabilities.db_bulk.MAX_CHOSEN_BYTES", 2 * LARGE)
    monkeypatch.setattr("lodger.engine.data.reading.related.MAX_BYTES", 2 * LARGE)
    attempt = shop.attempt()
    assert ask(attempt, "db.updateMany", set="books", filter={}, changes={"place": 0}, all=True)[0] == "too_large"
    assert not attempt.journal
    assert ask(attempt, "db.updateMany", set="books", filter={"id": {"lte": 2}}, changes={"place": 0}) == 2
    found = ask(attempt, "db.find", set="books", filter={"id": {"in": [4, 7, 10]}}, include="next")
    assert len(found["rows"]) == 1 or found[0] == "too_large"
    found = ask(attempt, "db.find", set="books", filter={"id": {"in": [4, 5]}}, include="next", limit=1)
    assert found["rows"][0]["next"]["id"] == 3
    settle(shop, attempt)
    assert ask(shop.attempt(), "db.count", set="books", filter={"place": 0}) == 2


def test_groups_of_large_texts(shop: Shop) -> None:
    attempt = shop.attempt()
    made = ask(attempt, "db.aggregate", set="books", groupBy="text")
    assert sum(group["count"] for group in made) == MANY
    with shop.engine.begin() as connection:
        for number in range(1, 6):
            connection.execute(library.update().where(library.c.id == number).values(text=str(number) * LARGE))
    code, message = ask(attempt, "db.aggregate", set="books", groupBy="text")
    assert code == "too_large", message


def test_one_attempt_keeps_no_more_than_it_may(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a script is shown is kept to be compared; getting large rows again and again would fill the node."""
    monkeypatch.setattr("lodger.engine.effects.journal.MAX_KEPT_BYTES", 3 * LARGE)
    attempt = shop.attempt()
    codes = []
    for number in (1, 1, 1, 1, 2, 4, 5, 7):
        answer = ask(attempt, "db.get", set="books", id=number)
        codes.append(answer[0] if isinstance(answer, tuple) else answer["id"])
    assert codes[:5] == [1, 1, 1, 1, 2], "the same row is kept once"
    assert codes[-1] == "too_large"


def test_a_process_that_may_be_told_little_is_given_small_pages(bare: Shop) -> None:
    attempt = bare.attempt(fetch_state=FetchState("one", "a", 0, frame_bytes=4096))
    for number in range(20):
        ask(attempt, "db.insert", set="things", values={"id": f"{number:02}", "text": "ü" * 300})
    seen: list[str] = []
    cursor = None
    while len(seen) < 20:
        reply = asyncio.run(attempt.call("db.find", json.dumps({"set": "things", "cursor": cursor, "limit": 500})))
        assert reply.ok
        assert len(reply.json.encode()) <= 4096
        page = json.loads(reply.json)
        seen += [row["id"] for row in page["rows"]]
        cursor = page["cursor"]
    assert seen == [f"{number:02}" for number in range(20)]
    assert cursor is None


def test_what_counts_as_large() -> None:
    kinds = {"text": True, "scan": True, "notes": True, "id": False, "org": False, "place": False}
    assert {name: is_wide(library.c[name]) for name in kinds} == kinds
    assert not is_wide(sa.Column("x", sa.String(1000)))

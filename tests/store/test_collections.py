"""Indexes on paths of collections: they change how long an answer takes, and no answer."""

import asyncio
import json
from typing import Any

import pytest
import sqlalchemy as sa
from tests.store.bench import Bench
from tests.store.platform_database import Player

from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.data.reading import collections, document_index
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.schema.script_data import document_index as entries

LONG = "x" * 300


@pytest.fixture
def shop(bench: Bench) -> Bench:
    bench.tenant("one")
    bench.tenant("two")
    return bench


def run(shop: Bench, *calls: tuple[str, dict[str, Any]], tenant: str = "one") -> list[Any]:
    """Make these calls in one run and commit it."""

    async def go() -> list[Any]:
        answers: list[Any] = []

        async def play(attempt: Attempt) -> None:
            attempt.counters.limits |= {
                "rows_written": 10**6,
                "queries": 10**6,
                "bytes_written": 10**9,
                "rows_read": 10**6,
            }
            for name, arguments in calls:
                reply = await attempt.call(name, json.dumps({"set": "things", **arguments}))
                assert reply.ok, reply.json
                answers.append(json.loads(reply.json))

        player = Player(shop.engine, play)
        await player.start()
        shop.engine.run_in(tenant, "job", 0)
        (claim,) = shop.claim(1)
        done = await player.execute(claim)
        await player.stop()
        shop.commit(claim, finished=done)
        return answers

    return asyncio.run(go())


def fill(shop: Bench, many: int, tenant: str = "one") -> None:
    for start in range(0, many, 500):
        rows = [
            {"id": f"{n:06}", "n": n, "city": f"c{n % 7}", "at": {"place": LONG + str(n)}}
            for n in range(start, min(many, start + 500))
        ]
        run(shop, ("db.insertMany", {"rows": rows}), tenant=tenant)


def document_count(shop: Bench, tenant: str = "one") -> int:
    with shop.engine.context.database.read() as connection:
        return (
            connection.scalar(sa.select(sa.func.count()).select_from(entries).where(entries.c.tenant_id == tenant)) or 0
        )


ASKED: list[dict[str, Any]] = [
    {"filter": {"city": "c3"}}, {"filter": {"n": {"gte": 1190}}}, {"filter": {"city": {"in": ["c1", None]}, "n": {"lt": 30}}},
    {"filter": {"at.place": LONG + "77"}}, {"filter": {"at.place": {"startsWith": LONG + "11"}}}, {"filter": {"city": None}},
    {"filter": {"at.place": {"gt": LONG + "99"}}}, {"filter": {"not": {"city": "c3"}}}, {"filter": {"city": {"ne": "c1"}}},
    {"filter": {"or": [{"city": "c1"}, {"n": 5}]}},
]  # fmt: skip


def answers(shop: Bench) -> list[Any]:
    return run(
        shop, *(("db.find", asked | {"limit": 500}) for asked in ASKED), *(("db.count", asked) for asked in ASKED)
    )


def test_what_was_there_before_is_indexed_and_no_answer_changes(shop: Bench) -> None:
    fill(shop, 1200)
    fill(shop, 20, "two")
    before = answers(shop)
    for path in ("city", "n", "at.place"):
        shop.engine.collections.index("one", "things", path)
    assert document_count(shop) == 3600
    assert document_count(shop, "two") == 0
    assert answers(shop) == before
    (shown,) = shop.engine.collections.list("one")
    assert (shown.name, shown.documents, shown.indexes) == ("things", 1200, ("at.place", "city", "n"))


def test_it_is_kept_with_the_documents(shop: Bench) -> None:
    shop.engine.collections.index("one", "things", "city")
    fill(shop, 30)
    run(shop, ("db.update", {"id": "000003", "changes": {"city": "new"}}), ("db.delete", {"id": "000010"}),
        ("db.increment", {"id": "000004", "amounts": {"n": 1}}), ("db.update", {"id": "000005", "changes": {"city": None}}))  # fmt: skip
    assert document_count(shop) == 29
    found, gone, none = run(
        shop,
        ("db.find", {"filter": {"city": "new"}}),
        ("db.count", {"filter": {"city": "c3"}}),
        ("db.find", {"filter": {"city": None}}),
    )
    assert [row["id"] for row in found["rows"]] == ["000003"]
    assert gone == 2, "of 3, 10, 17 and 24, one was changed and one removed"
    assert [row["id"] for row in none["rows"]] == ["000005"]


def test_the_database_uses_it(shop: Bench, kind: str) -> None:
    fill(shop, 1500)
    shop.engine.collections.index("one", "things", "n")
    said: list[str] = []
    engine = shop.engine.context.database.engine

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "lodger_documents" in statement and "count" in statement and not said:
            said.append("")
            plan = "EXPLAIN QUERY PLAN " if kind == "sqlite" else "EXPLAIN "
            own = cursor.connection.cursor()
            own.execute(plan + statement, parameters)
            said[0] = " ".join(str(row) for row in own.fetchall())

    if kind == "postgresql":
        with engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(sa.text("ANALYZE"))
    sa.event.listen(engine, "before_cursor_execute", explain)
    assert run(shop, ("db.count", {"filter": {"n": {"gte": 1490}}})) == [10]
    sa.event.remove(engine, "before_cursor_execute", explain)
    assert "ix_lodger_document_index_number" in said[0]


def test_broken_off_it_goes_on(shop: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(shop, 1200)
    whole, calls = collections.build, []

    def broken(*given: Any) -> bool:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(*given)

    monkeypatch.setattr(collections, "build", broken)
    with pytest.raises(KeyboardInterrupt):
        shop.engine.collections.index("one", "things", "n")
    assert document_count(shop) == 500
    assert run(shop, ("db.count", {"filter": {"n": {"gte": 0}}})) == [1200], "it is not used before it is complete"
    run(shop, ("db.update", {"id": "001100", "changes": {"n": -1}}))
    shop.engine.collections.index("one", "things", "n")
    assert document_count(shop) == 1200
    assert run(shop, ("db.count", {"filter": {"n": {"gte": 0}}})) == [1199]


def test_what_cannot_be_indexed(shop: Bench) -> None:
    index = shop.engine.collections.index
    for path in ("id", "a b", "a..b", "", "$.a", "a'b", "x" * 600):
        with pytest.raises(InputError):
            index("one", "things", path)
    with pytest.raises(InputError):
        index("one", "no; DROP", "a")
    with pytest.raises(NotFound):
        index("nobody", "things", "a")
    for number in range(document_index.MAX_INDEXES):
        index("one", "things", f"p{number}")
    index("one", "things", "p0")
    with pytest.raises(Conflict) as refused:
        index("one", "things", "more")
    assert refused.value.code == "indexes_full"
    shop.engine.collections.drop_index("one", "things", "p0")
    index("one", "things", "more")
    with pytest.raises(NotFound):
        shop.engine.collections.drop_index("one", "things", "p0")


@pytest.mark.parametrize(
    ("begin", "after"),
    [
        ("a", "b"),
        ("az", "a{"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff", None),
        ("\ud7ff", "\ue000"),
        ("", None),
        ("é", "ê"),
    ],
)
def test_the_first_text_behind_all_that_begin_so(begin: str, after: str | None) -> None:
    assert document_index.after_prefix(begin) == after

"""The law of the filter language: SQL over untouched rows put together with the journal's, and Python over all, say the same."""

import asyncio
import json
import math
import os
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.data.asking import EMAILS, Asker
from tests.unit.data.shop import NOW_US, Shop, customers, orders

from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.filtering import aggregate
from lodger.engine.data.filtering.evaluator import matches, ordered
from lodger.engine.data.filtering.parsing import read_filter, read_order
from lodger.engine.data.reading.reader import Reader
from lodger.engine.data.reading.related import lookup_of
from lodger.engine.data.sets.guard import isolated_query
from lodger.engine.data.sets.scope import Scope
from lodger.engine.effects import commit
from lodger.engine.effects.effect import on_wire
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.schema.script_data import collection_indexes

#: Of each of six worlds; ``LODGER_FUZZ=whole`` asks many times as many.
QUERIES = {"whole": 400, "brief": 2}.get(os.environ.get("LODGER_FUZZ", ""), 12)


class Refused(Exception):
    """The question breaks a rule of the language."""


class Gone(Exception):
    """The row was deleted before."""


async def reported(attempt: Attempt, name: str, **arguments: Any) -> Any:
    reply = await attempt.call(name, json.dumps(arguments))
    return json.loads(reply.json)


def in_python(wanted: aggregate.AggregateQuery, rows: list[Any]) -> Any:
    """Return what an aggregation computes in Python alone."""
    try:
        if (spans := wanted.spans()) is not None:
            wanted = wanted.with_periods(aggregate.aggregate_rows(spans, rows))
        return json.loads(json.dumps(aggregate.shown(wanted, aggregate.aggregate_rows(wanted, rows))))
    except CallRefused as refused:
        return {"code": refused.code, "message": refused.message}


async def ask(attempt: Attempt, name: str, **arguments: Any) -> Any:
    reply = await attempt.call(name, json.dumps(arguments))
    body = json.loads(reply.json)
    if not reply.ok:
        raise {"bad_request": Refused, "not_comparable": Refused, "not_found": Gone}[body["code"]](body["message"])
    return body


BIG = {"rows_written": 10**6, "queries": 10**6, "rows_read": 10**9}


async def fill(shop: Shop, asker: Asker, name: str, documents: bool, many: int = 30) -> None:
    people(shop)
    for tenant in ("one", "two", "three"):
        attempt = shop.attempt(tenant, budgets=BIG)
        for _ in range(many if tenant == "one" else 5):
            await ask(attempt, "db.insert", set=name, values=asker.document() if documents else asker.row())
        with shop.engine.begin() as connection:
            commit.apply(connection, attempt.journal, now_us=NOW_US)
    with shop.engine.begin() as connection:  # as the platform does: to no row, to one's own, to another tenant's
        for number in range(1, many + 11):
            which = asker.one([None, *range(1, 9)])
            connection.execute(orders.update().where(orders.c.id == number).values(customer_id=which))


def people(shop: Shop) -> None:
    """Return two tenants some customers."""
    shop.add(
        customers,
        *(
            {"id": n, "org_id": "two" if n in (4, 7) else "one", "email": EMAILS[n % 6] + "!" * (n // 6)}
            for n in range(1, 9)
        ),
    )


async def scribble(attempt: Attempt, asker: Asker, name: str, documents: bool) -> None:
    """Insert, change, increment and delete through the journal; nothing is committed."""
    keys = [row["id"] for row in (await ask(attempt, "db.find", set=name, limit=500))["rows"]]
    if not documents:  # the rows that keys lead to are written too
        await ask(attempt, "db.update", set="customers", id=1, changes={"email": "changed@x"})
        await ask(attempt, "db.delete", set="customers", id=2)
        made = await ask(attempt, "db.insert", set="customers", values={"email": "made@x"})
        for key in asker.draw.sample(keys, 3):
            await ask(attempt, "db.update", set=name, id=key, changes={"customer_id": made["id"]})
    for _ in range(12):
        await ask(attempt, "db.insert", set=name, values=asker.document() if documents else asker.row())
        changes = (
            asker.document()
            if documents
            else {"note": asker.value("text"), "total": asker.one(["0.10", "7.77"]), "weight": None}
        )
        try:
            await ask(attempt, "db.update", set=name, id=asker.one(keys), changes=changes)
            if documents:
                await ask(attempt, "db.increment", set=name, id=asker.one(keys), amounts={"n": 1.5})
            else:
                await ask(attempt, "db.increment", set=name, id=asker.one(keys), amounts={"items": 2, "total": "0.10"})
        except Gone:
            continue
    for key in keys[:5]:
        await ask(attempt, "db.delete", set=name, id=key)


def dressed(shop: Shop, attempt: Attempt) -> Any:
    """Return what adds the customer to an order, by looking through all of the tenant's customers as the run sees them."""
    rows = shop.datasets.named("customers")
    with shop.engine.connect() as connection:
        everybody = connection.execute(sa.select(customers).where(customers.c.org_id == "one"))
        known: dict[int, Any] = {row.id: {"id": row.id, "email": row.email} for row in everybody}
    known |= {key: held.now for key, held in attempt.journal.of(rows).touched.items()}
    return lambda row: row | {".customer_id": known.get(row.get("customer_id"))}


def close(one: Any, other: Any) -> bool:
    """Equal; sums of floats up to the order of their addition."""
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(close(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


@pytest.mark.parametrize("what", ["table", "collection", "indexed"])
def test_the_database_and_python_agree(shop: Shop, what: str) -> None:
    if what == "indexed":
        with shop.engine.begin() as connection:
            for path in ("a", "c", "deep.x", "a.b"):
                values = {
                    "tenant_id": "one",
                    "collection": "things",
                    "path": path,
                    "complete": 1,
                    "upto": "",
                    "made_us": 0,
                }
                connection.execute(collection_indexes.insert().values(values))
    asyncio.run(check_agreement(shop, Asker(1), what != "table"))


async def check_agreement(shop: Shop, asker: Asker, documents: bool) -> None:
    """Assert that questions are answered alike by SQL and by Python."""
    name = "things" if documents else "orders"
    await fill(shop, asker, name, documents)
    attempt = shop.attempt(budgets=BIG)
    await scribble(attempt, asker, name, documents)
    rows = shop.datasets.named(name)
    with shop.engine.connect() as connection:
        whole = isolated_query(
            lambda inner: Reader(inner, Scope("one")).page(
                rows, read_filter({}, rows.lookup), read_order(None, rows.lookup, rows.key), 10_000
            ),
            "one", shop.datasets, rows,
        )  # fmt: skip
        everything, _cut = whole(connection)
    touched = attempt.journal.of(rows).touched
    world = [row for row in everything if row[rows.key.name] not in touched] + [
        held.now for held in touched.values() if held.now is not None
    ]
    dress = dressed(shop, attempt)
    counted = 0
    for _ in range(QUERIES):
        question, sort, limit = asker.filter(documents), asker.order(documents), asker.draw.randrange(1, 20)
        try:
            page = await ask(attempt, "db.find", set=name, filter=question, order=sort, limit=limit)
        except Refused:
            continue
        lookup = lookup_of(rows, shop.datasets, lambda _name: True)
        tree, order = read_filter(question, lookup), read_order(sort, rows.lookup, rows.key)
        chosen = [row for row in world if matches(tree, dress(row))]
        wanted_rows = [on_wire(rows, row) for row in ordered(order, chosen)]
        counted += 1
        seen = len(page["rows"])
        assert page["rows"] == wanted_rows[:seen], question
        assert seen == min(limit, len(wanted_rows))
        assert (page["cursor"] is None) is (seen == len(wanted_rows)), question
        if page["cursor"] is not None:
            following = await ask(
                attempt, "db.find", set=name, filter=question, order=sort, limit=limit, cursor=page["cursor"]
            )
            more = len(following["rows"])
            assert following["rows"] == wanted_rows[seen : seen + more], (question, sort)
            assert more == min(limit, len(wanted_rows) - seen)
        assert await ask(attempt, "db.count", set=name, filter=question) == len(wanted_rows)
        asked = asker.aggregate(documents)
        wanted = aggregate.read_wanted(
            {m: asked[m] for m in ("sum", "avg", "min", "max")}, asked.get("groupBy"), rows.lookup
        )
        in_sql = await reported(attempt, "db.aggregate", set=name, filter=question, **asked)
        assert close(in_sql, in_python(wanted, chosen)), (question, asked)
    assert counted > QUERIES / 2, "most questions are answered, not refused"

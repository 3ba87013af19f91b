"""No sentence that a tenant can say reaches another tenant's row: random questions and writes over tables full of canaries.

security class D 57-62 and 67. The same seeds are run once more with the tenant's predicate taken away and must then leak:
that proves that the test can see.
"""

import json
import os
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.data.asking import EMAILS, Asker
from tests.unit.data.shop import NOW_US, Shop, customers, orders

from lodger.engine.data.sets.scope import Scope
from lodger.engine.effects import commit
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.schema.script_data import documents as documents_table
from lodger.engine.store.schema.script_data import kv

WHOLE = os.environ.get("LODGER_FUZZ") == "whole"
#: Questions and writes of each seed, by database: LODGER_FUZZ=whole asks and writes more than ten thousand times on each.
QUESTIONS = {"sqlite": 2600, "postgresql": 2600} if WHOLE else {"sqlite": 80, "postgresql": 30}
WRITES = {"sqlite": 2600, "postgresql": 2600} if WHOLE else {"sqlite": 50, "postgresql": 25}
LEAKS_WITHIN = 40
SEEDS = [11, 12, 13, 14] if WHOLE else [11]
BIG = {"rows_written": 10**6, "queries": 10**6, "rows_read": 10**9}


async def settle_in(shop: Shop, asker: Asker) -> None:
    """Return three tenants rows that look alike; those of two and three say so in every text column that tells nothing else.

    Foreign keys lead anywhere, as the platform may write them: to one's own customers and to others'.
    """
    owners = ("one", "two", "three")
    shop.add(
        customers,
        *(
            {
                "id": n,
                "org_id": owners[n % 3],
                "email": EMAILS[n % 6] + (f"canary-{owners[n % 3]}" if n % 3 else "") + str(n),
            }
            for n in range(1, 10)
        ),
    )
    for tenant in ("one", "two", "three"):
        attempt = shop.attempt(tenant, budgets=BIG)
        mark = "mine" if tenant == "one" else f"canary-{tenant}"
        for number in range(20):
            values = asker.row() | {"note": mark}
            if tenant != "one":
                values["extra"] = {"of": mark}
            await reported(attempt, "db.insert", set="orders", values=values)
            await reported(
                attempt, "db.insert", set="things", values=asker.document() | {"mark": mark, "id": f"{tenant}-{number}"}
            )
            await reported(attempt, "kv.set", key=f"k{number}", value=mark)
        with shop.engine.begin() as connection:
            commit.apply(connection, attempt.journal, now_us=NOW_US)
    with shop.engine.begin() as connection:
        for number in range(1, 61):
            which = asker.one([None, *range(1, 10)])
            connection.execute(orders.update().where(orders.c.id == number).values(customer_id=which))


async def reported(attempt: Attempt, name: str, **arguments: Any) -> tuple[bool, Any, str]:
    """Make a call; return whether it succeeded, its value, and its text."""
    reply = await attempt.call(name, json.dumps(arguments))
    return reply.ok, json.loads(reply.json), reply.json


async def questions(shop: Shop, asker: Asker, many: int) -> int:
    """Ask as tenant one; give how many answers held something of another's."""
    own_orders = {row["id"] for row in shop.rows(orders, org_id="one")}
    leaks = 0
    attempt = shop.attempt(budgets=BIG)
    for number in range(many):
        documents = number % 4 == 3
        name = "things" if documents else "orders"
        question = asker.filter(documents)
        kind = asker.one(["find", "find", "count", "aggregate", "get", "list", "changes"])
        if kind == "find":
            ok, body, text = await reported(
                attempt, "db.find", set=name, filter=question, order=asker.order(documents), limit=500,
                **({} if documents else {"include": asker.one([[], ["customer"]])}),
            )  # fmt: skip
            ids = {row["id"] for row in body["rows"]} if ok else set()
            foreign = any(not str(i).startswith("one-") for i in ids) if documents else not ids <= own_orders
        elif kind == "count":
            ok, body, text = await reported(attempt, "db.count", set=name, filter=question)
            foreign = ok and body > 20
        elif kind == "aggregate":
            ok, body, text = await reported(
                attempt, "db.aggregate", set=name, filter=question, **asker.aggregate(documents)
            )
            foreign = ok and sum(group["count"] for group in body) > 20
        elif kind == "get":
            key: Any = (
                f"{asker.one(['one', 'two', 'three'])}-{asker.draw.randrange(21)}"
                if documents
                else asker.draw.randrange(70)
            )
            ok, body, text = await reported(attempt, "db.get", set=name, id=key)
            foreign = (
                ok and body is not None and (not str(key).startswith("one-") if documents else key not in own_orders)
            )
        elif kind == "changes":
            ok, body, text = await reported(
                attempt, "db.changes", set=asker.one([name, "customers"]), **{"from": "start"}, limit=500
            )
            foreign = ok and any(
                not str(each["id"]).startswith("one-") if documents else each["id"] not in own_orders
                for each in body["changes"]
            )
        else:
            ok, body, text = await reported(attempt, "kv.list", prefix=asker.one(["", "k", "k1"]), limit=500)
            foreign = ok and len(body) > 20
        leaks += foreign or "canary-" in text
    return leaks


@pytest.mark.slow
@pytest.mark.timeout(3000 if WHOLE else 120)
@pytest.mark.parametrize("seed", SEEDS)
async def test_ten_thousand_questions_see_nothing_foreign(shop: Shop, seed: int) -> None:
    asker = Asker(seed)
    await settle_in(shop, asker)
    assert await questions(shop, asker, QUESTIONS[shop.dialect]) == 0


@pytest.mark.parametrize("seed", SEEDS)
async def test_without_the_predicate_the_same_questions_leak(
    bare: Shop, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asker = Asker(seed)
    await settle_in(bare, asker)
    monkeypatch.setattr(Scope, "predicate", lambda *_: sa.true())
    assert await questions(bare, asker, LEAKS_WITHIN) > 0


@pytest.mark.timeout(3000 if WHOLE else 120)
@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
async def test_without_the_predicate_the_databases_own_wall_holds(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same questions and writes, with nothing but views, role and row-level security between tenants."""

    asker = Asker(SEEDS[0])
    await settle_in(shop, asker)
    before = everything_of_others(shop)
    monkeypatch.setattr(Scope, "predicate", lambda *_: sa.true())
    assert await questions(shop, asker, QUESTIONS[shop.dialect]) == 0
    await writes(shop, asker, WRITES[shop.dialect])
    assert everything_of_others(shop) == before


def everything_of_others(shop: Shop) -> list[Any]:
    """Return the rows of the other tenants."""
    found: list[Any] = []
    with shop.engine.connect() as connection:
        for table, owner in (
            (orders, "org_id"),
            (customers, "org_id"),
            (documents_table, "tenant_id"),
            (kv, "tenant_id"),
        ):
            columns = [sa.type_coerce(column, sa.String) for column in table.columns]
            rows = connection.execute(
                sa.select(*columns).where(table.c[owner] != "one").order_by(*table.primary_key.columns)
            )
            found.append([tuple(row) for row in rows])
    return found


async def writes(shop: Shop, asker: Asker, many: int) -> int:
    """Write as tenant one by random ids and commit each; give how many commits were made."""
    done = 0
    for number in range(many):
        documents = number % 3 == 2
        name = "things" if documents else "orders"
        key: Any = (
            f"{asker.one(['one', 'two', 'three'])}-{asker.draw.randrange(21)}"
            if documents
            else asker.draw.randrange(70)
        )
        verb = asker.one(["update", "delete", "increment", "insert", "kv", "many", "upsert", "customer"])
        attempt = shop.attempt(budgets=BIG)
        if verb == "update":
            column = asker.one(["note", "state", "org_id", "tenant_id", "id", "collection", "customer_id"])
            await reported(attempt, "db.update", set=name, id=key, changes={column: asker.one(["two", 3, "x"])})
        elif verb == "increment":
            await reported(attempt, "db.increment", set=name, id=key, amounts={asker.one(["items", "n", "org_id"]): 1})
        elif verb == "delete":
            await reported(attempt, "db.delete", set=name, id=key)
        elif verb == "many":
            question = asker.filter(documents)
            await reported(
                attempt,
                "db.updateMany",
                set=name,
                filter=question,
                changes={"note": "mine"} if not documents else {"z": 1},
                all=True,
            )
            if number % 7 == 0:
                await reported(attempt, "db.deleteMany", set=name, filter=asker.filter(documents), all=True)
            more = [asker.document() | {"id": f"two-{number % 20}"}] if documents else [asker.row()]
            await reported(attempt, "db.insertMany", set=name, rows=more)
        elif verb == "upsert":
            values = asker.document() | {"id": key} if documents else asker.row()
            await reported(attempt, "db.upsert", set=name, values=values, **({} if documents else {"on": "state"}))
        elif verb == "customer":
            email = EMAILS[asker.draw.randrange(6)] + "canary-two" + str(asker.draw.randrange(10))
            await reported(attempt, "db.upsert", set="customers", values={"email": email}, on="email")
            await reported(attempt, asker.one(["db.delete", "db.get"]), set="customers", id=asker.draw.randrange(1, 11))
        elif verb == "insert":
            values = {"id": key, "org_id": "two", "tenant_id": "two", "state": "x"} if documents else asker.row()
            await reported(attempt, "db.insert", set=name, values=values)
        else:
            await reported(
                attempt, asker.one(["kv.set", "kv.add"]), key=f"k{asker.draw.randrange(30)}", value=1, amount=1
            )
            await reported(attempt, "kv.delete", key=f"k{asker.draw.randrange(30)}")
        if not attempt.journal:
            continue
        try:
            with shop.engine.begin() as connection:
                commit.apply(connection, attempt.journal, now_us=NOW_US)
            done += 1
        except (commit.EffectRefused, commit.ConflictFound):
            continue
    return done


@pytest.mark.slow
@pytest.mark.timeout(3000 if WHOLE else 120)
@pytest.mark.parametrize("seed", SEEDS)
async def test_no_write_touches_another_tenants_row(shop: Shop, seed: int) -> None:
    asker = Asker(seed)
    await settle_in(shop, asker)
    before = everything_of_others(shop)
    many = WRITES[shop.dialect]
    assert await writes(shop, asker, many) > many / 8
    assert everything_of_others(shop) == before


async def test_without_the_predicate_writes_reach_others(bare: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    asker = Asker(21)
    await settle_in(bare, asker)
    before = everything_of_others(bare)
    monkeypatch.setattr(Scope, "predicate", lambda *_: sa.true())
    await writes(bare, asker, LEAKS_WITHIN)
    assert everything_of_others(bare) != before


@pytest.mark.parametrize(
    "name",
    ["id; DROP TABLE orders", "id\" OR 1=1 --", "org_id", "audit", "rowid", "_rowid_", "*", "orders.id", "$.a",
     "a'b", "a\"b", "a[0]", "a.*", "__proto__", "a..b", ".a", "a.", "a b", "ａ", "1=1"],
)  # fmt: skip
async def test_identifiers_are_never_a_tenants(still: Shop, name: str) -> None:
    """Names come from an allow-list: what is not in it is refused before any SQL is made."""

    attempt = still.attempt()
    fields = (
        [("orders", name)]
        if name in ("org_id", "audit", "rowid", "_rowid_", "__proto__", "orders.id")
        else [("orders", name), ("things", name)]
    )
    for rows, field in fields:
        for call in (
            {"filter": {field: 1}}, {"order": field}, {"order": {field: "desc"}}, {"filter": {"or": [{field: {"in": [1]}}]}},
        ):  # fmt: skip
            ok, body, _ = await reported(attempt, "db.find", set=rows, **call)
            assert (ok, body.get("code")) == (False, "bad_request"), (rows, call)
        ok, body, _ = await reported(attempt, "db.aggregate", set=rows, groupBy=field)
        assert (ok, body.get("code")) == (False, "bad_request") if isinstance(body, dict) else not body
    assert still.asked == 0


async def test_no_byte_of_a_tenant_is_in_the_sql(shop: Shop) -> None:
    said: list[str] = []
    sa.event.listen(shop.engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    marker = "zzq'\"marker"

    attempt = shop.attempt()
    await reported(attempt, "db.find", set="orders", filter={"note": {"contains": marker}, "state": {"in": [marker]}})
    await reported(
        attempt,
        "db.find",
        set="marker",
        filter={"marker": marker, "or": [{"marker.x": {"startsWith": marker}}]},
        order="-marker",
    )
    await reported(attempt, "db.get", set="marker", id=marker)
    await reported(attempt, "kv.get", key=marker)
    await reported(attempt, "db.insert", set="orders", values={"note": marker, "state": "x", "items": 1})
    with shop.engine.begin() as connection:
        commit.apply(connection, attempt.journal, now_us=NOW_US)

    assert len(said) > 5
    assert not [text for text in said if "marker" in text]

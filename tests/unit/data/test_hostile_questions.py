"""Questions made to break the engine: each is answered or refused with a code; none is a fault of ours."""

import asyncio
import base64
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.data.shop import NOW_US, Shop, order, orders

from lodger.engine.effects import commit


@pytest.fixture
def shop(shop: Shop) -> Shop:
    shop.add(orders, *(order("one", number, total="1.50", note=f"n{number % 3}") for number in range(1, 8)))
    return shop


@pytest.fixture(scope="module")
def still(still: Shop) -> Shop:
    still.add(orders, *(order("one", number, total="1.50", note=f"n{number % 3}") for number in range(1, 8)))
    return still


def ask(shop: Shop, name: str, **arguments: Any) -> tuple[bool, Any]:
    reply = asyncio.run(shop.attempt().call(name, json.dumps(arguments)))
    return reply.ok, json.loads(reply.json)


def nested(word: str, depth: int) -> dict[str, Any]:
    tree: dict[str, Any] = {"note": "x"}
    for _ in range(depth):
        tree = {word: tree if word == "not" else [tree, tree]}
    return tree


WIDE = [f"{number}.25" for number in range(500)]
QUESTIONS: dict[str, tuple[dict[str, Any], bool]] = {
    "200 conditions": ({"filter": {"or": [{"note": str(n)} for n in range(200)]}}, True),
    "201 conditions": ({"filter": {"or": [{"note": str(n)} for n in range(201)]}}, False),
    "16 deep": ({"filter": nested("not", 16)}, True),
    "17 deep": ({"filter": nested("not", 17)}, False),
    "doubling": ({"filter": nested("or", 12)}, False),
    "a list of 500 decimals": ({"filter": {"total": {"in": WIDE}}}, True),
    "four of them": ({"filter": {"and": [{"total": {"in": WIDE}}] * 4}}, True),
    "five of them": ({"filter": {"and": [{"total": {"in": WIDE}}] * 5}}, False),
    "501 values": ({"filter": {"note": {"in": ["x"] * 501}}}, False),
    "documents, four lists": ({"set": "things", "filter": {"not": {"or": [{"a.b": {"in": list(range(500))}}] * 4}}}, True),
    "documents, everything at once": (
        {"set": "things", "filter": {"and": [{"a": {"in": WIDE}}] * 4 + [{"b": {"lt": n}} for n in range(190)]}, "order": ["a", "-b", "c"]},
        True,
    ),
    "nine terms": ({"order": ["note"] * 9}, False),
    "eight terms": ({"order": ["note", "-total", "items", "-paid", "day", "ref", "-serial", "modified"]}, True),
    "empty condition": ({"filter": {"note": {}}}, False),
    "an unknown operator": ({"filter": {"note": {"$where": "1"}}}, False),
    "a regular expression": ({"filter": {"note": {"regex": "(a+)+$"}}}, False),
    "a tenant by a side door": ({"filter": {"org_id": "two"}}, False),
    "a limit of nothing": ({"limit": 0}, False),
    "a limit of text": ({"limit": "9"}, False),
}  # fmt: skip


def test_more_digits_than_the_database_is_exact_in(shop: Shop, kind: str) -> None:
    """SQLite keeps doubles and refuses to guess; PostgreSQL is exact in any number of digits."""
    ok, body = ask(shop, "db.find", set="orders", filter={"weight": 1, "total": {"lt": "1" * 40}})
    assert ok is (kind == "postgresql"), body


@pytest.mark.parametrize("name", QUESTIONS)
def test_big_and_odd_questions(still: Shop, name: str) -> None:
    arguments, good = QUESTIONS[name]
    ok, body = ask(still, "db.find", **{"set": "orders"} | arguments)
    assert ok is good, body
    if not ok:
        assert body["code"] in {"bad_request", "too_many_digits"}


SORTED = [
    ("orders", ["total", "id"]),
    ("orders", ["-modified", "id"]),
    ("things", ["a", "id"]),
    ("things", ["-a.b", "c", "id"]),
]


def cursors(seed: int, many: int) -> Iterator[tuple[str, Any]]:
    """Return real-looking cursors with one member replaced, for a set and an order of each kind."""
    draw = random.Random(seed)
    odd: list[Any] = [
        None, True, 0, -1, 2**70, 1.5, 1e300, "", "x", "2026-01-01T00:00:00.000000Z", [], {}, [0, 0], [1, 7], [1, True],
        [2, "x"], [2, 2**70], [2, None],
        [3, 5], [3, "x"],
        [4, "x"], [4, "2026-01-01T00:00:00.000000Z"], [5, 0], [9, 0], ["2", 1], [2.0, 1], [True, 1], {"$instant": "x"}, "1.25",
    ]  # fmt: skip
    for _ in range(many):
        name, order = draw.choice(SORTED)
        whole: list[Any] = [name, order, [draw.choice(odd) for _ in order]]
        if draw.random() < 0.2:
            whole[draw.randrange(3)] = draw.choice(odd)
        text = json.dumps(whole).encode()
        yield name, (base64.urlsafe_b64encode(text).decode(), [term for term in order if term != "id"])


def test_forged_cursors(shop: Shop) -> None:
    async def go() -> int:
        attempt = shop.attempt(budgets={"queries": 10**6, "rows_read": 10**9})
        for number in range(8):
            values = {
                "a": [None, True, 2, "x", {"$instant": "2026-01-01T00:00:00Z"}, 3, 0.5, "y"][number],
                "c": number,
            }
            assert (await attempt.call("db.insert", json.dumps({"set": "things", "values": values}))).ok
        answered = 0
        for name, (cursor, sort) in cursors(5, 1500):
            reply = await attempt.call("db.find", json.dumps({"set": name, "cursor": cursor, "order": sort}))
            answered += reply.ok
            assert reply.ok or json.loads(reply.json)["code"] in {"bad_request", "not_comparable", "too_many_digits"}
        return answered

    assert asyncio.run(go()) > 20
    for cursor in ("", "x", "=", "é", "A" * 70_000, base64.urlsafe_b64encode(b"[" * 5000).decode()):
        ok, body = ask(shop, "db.find", set="orders", cursor=cursor)
        assert (ok, body["code"]) == (False, "bad_request")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("db.increment", {"set": "orders", "id": 1, "amounts": {"serial": "9223372036854775807"}}),
        ("db.increment", {"set": "orders", "id": 1, "amounts": {"weight": 1.7e308}}),
        ("kv.add", {"key": "n", "amount": 10**39}),
        ("kv.add", {"key": "n", "amount": 1.7e308}),
    ],
)
async def test_sums_that_leave_their_type(shop: Shop, name: str, arguments: dict[str, Any]) -> None:
    attempt = shop.attempt()
    replies = [await attempt.call(name, json.dumps(arguments)) for _ in range(3)]
    assert not replies[-1].ok
    assert json.loads(replies[-1].json)["code"] == "out_of_range"


@pytest.mark.parametrize("where", ["database", "journal", "both"])
@pytest.mark.parametrize("measure", ["sum", "avg"])
async def test_sums_beyond_a_number_are_refused_on_both_databases(shop: Shop, where: str, measure: str) -> None:
    first, second = shop.attempt(), shop.attempt()
    for number in range(3):
        attempt = second if where == "journal" or (where == "both" and number) else first
        for name in ("orders", "things"):
            values = {"weight": 1.7e308} | ({"state": "x", "items": 1} if name == "orders" else {})
            assert (await attempt.call("db.insert", json.dumps({"set": name, "values": values}))).ok
    with shop.engine.begin() as connection:
        commit.apply(connection, first.journal, now_us=NOW_US)
    for name in ("orders", "things"):
        reply = await second.call("db.aggregate", json.dumps({"set": name, measure: "weight"}))
        assert (reply.ok, json.loads(reply.json).get("code")) == (False, "out_of_range"), name
        assert (await second.call("db.aggregate", json.dumps({"set": name, "max": "weight"}))).ok

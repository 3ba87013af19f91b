"""Foreign keys are followed inside the exposed set and the tenant, and nowhere else."""

from typing import Any

import pytest
import sqlalchemy as sa
from tests.cases import one_by_one
from tests.unit.capabilities.feeding import ask
from tests.unit.data.shop import Shop, customers, order, orders

from lodger.engine.core.access.grants import parse
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.store.usage.budget_reservations import ReservationRequest


def furnish(shop: Shop) -> Shop:
    shop.add(
        customers,
        {"id": 1, "org_id": "one", "email": "gold@one.example"},
        {"id": 2, "org_id": "two", "email": "canary@two.example"},
    )
    # What the platform wrote itself may lead anywhere: order 2 to another tenant's customer.
    shop.add(orders, order("one", 1, customer_id=1), order("one", 2, customer_id=2), order("one", 3))
    return shop


@pytest.fixture
def shop(shop: Shop) -> Shop:
    return furnish(shop)


def ids(found: Any) -> list[int]:
    return [row["id"] for row in found["rows"]]


def test_a_filter_follows_a_key(shop: Shop) -> None:
    attempt = shop.attempt()
    assert ids(ask(attempt, "db.find", set="orders", filter={"customer.email": "gold@one.example"})) == [1]
    assert ids(ask(attempt, "db.find", set="orders", filter={"customer.email": {"contains": "@"}})) == [1]
    assert ask(attempt, "db.count", set="orders", filter={"not": {"customer.email": "gold@one.example"}}) == 2
    assert ask(attempt, "db.updateMany", set="orders", filter={"customer.id": 1}, changes={"note": "x"}) == 1


def test_another_tenants_row_is_not_there(shop: Shop) -> None:
    attempt = shop.attempt()
    for asked in (
        {"customer.email": "canary@two.example"},
        {"customer.id": 2},
        {"customer.email": {"startsWith": "canary"}},
    ):
        assert ids(ask(attempt, "db.find", set="orders", filter=asked)) == []
    assert ids(ask(attempt, "db.find", set="orders", filter={"customer.email": None})) == [2, 3]
    found = ask(attempt, "db.find", set="orders", include=["customer"])["rows"]
    assert [row["customer"] for row in found] == [{"id": 1, "email": "gold@one.example"}, None, None]
    assert ask(attempt, "db.get", set="orders", id=2, include="customer")["customer"] is None


def test_what_a_run_wrote_itself_is_followed_too(shop: Shop) -> None:
    attempt = shop.attempt()
    made = ask(attempt, "db.insert", set="customers", values={"email": "new@one.example"})
    ask(attempt, "db.update", set="customers", id=1, changes={"email": "changed@one.example"})
    ask(attempt, "db.update", set="orders", id=3, changes={"customer_id": made["id"]})
    found = ask(
        attempt, "db.find", set="orders", filter={"customer.email": {"contains": "one.example"}}, include="customer"
    )
    assert [row["customer"]["email"] for row in found["rows"]] == ["changed@one.example", "new@one.example"]
    ask(attempt, "db.delete", set="customers", id=1)
    assert ids(ask(attempt, "db.find", set="orders", filter={"customer.id": None})) == [1, 2]


def test_only_with_the_right_to_read_both(shop: Shop) -> None:
    attempt = shop.attempt(claim={"grants": parse(["sets:read:orders"])})
    for more in ({"filter": {"customer.email": "x"}}, {"include": "customer"}):
        code, said = ask(attempt, "db.find", set="orders", **more)
        assert (code, said) == ("bad_request", "orders has the relations: none")
    assert "customers" not in attempt.context()


@one_by_one(
    "asked",
    [
        {"filter": {"customer.org_id": "two"}}, {"filter": {"customer.nothing": 1}}, {"filter": {"nobody.email": 1}},
        {"filter": {"customer.email.x": 1}}, {"filter": {"customer": 1}}, {"order": "customer.email"}, {"include": "orders"},
        {"include": ["customer", "org_id"]}, {"filter": {"customer.": 1}}, {"filter": {".email": 1}},
        {"filter": {"or": [{"customer.id": n} for n in range(21)]}},
        {"filter": {"customer.email; DROP TABLE orders": 1}}, {"filter": {"customer.email": {"gte": None}}},
    ],
)  # fmt: skip
def test_what_cannot_be_followed(shop: Shop, asked: dict[str, Any]) -> None:
    asked_before = shop.asked
    assert ask(shop.attempt(), "db.find", set="orders", **asked)[0] == "bad_request"
    assert shop.asked == asked_before
    assert ask(shop.attempt(), "db.aggregate", set="orders", groupBy="customer.email")[0] == "bad_request"


def test_rows_that_come_along_count(shop: Shop) -> None:
    attempt = shop.attempt(budgets={"rows_read": 3})
    assert ask(attempt, "db.find", set="orders", include="customer")[0] == "budget_exceeded"
    attempt = shop.attempt(budgets={"rows_read": 4})
    assert len(ask(attempt, "db.find", set="orders", include="customer")["rows"]) == 3
    assert attempt.counters.used["rows_read"] == 4


def test_by_what_name_a_key_is_followed() -> None:
    metadata = sa.MetaData()
    sa.Table(
        "people",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("org", sa.Integer),
        sa.Column("code", sa.String),
    )
    source = sa.Table(
        "t", metadata,
        sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.Integer), sa.Column("owner", sa.ForeignKey("people.id")),
        sa.Column("buyer_id", sa.ForeignKey("people.id")), sa.Column("by_code", sa.ForeignKey("people.code")),
        sa.Column("seller_id", sa.ForeignKey("people.id")), sa.Column("seller", sa.String),
    )  # fmt: skip
    datasets = Datasets()
    made = datasets.expose(source, tenant_column="org")
    datasets.expose(metadata.tables["people"], tenant_column="org")
    assert sorted(made.links) == ["buyer", "by_code_row", "owner_row", "seller_id_row"]
    assert sorted(datasets.described()["t"]["links"]) == ["buyer", "owner_row", "seller_id_row"], (
        "only by the rows' key"
    )


def test_a_days_budget_has_room_for_all_that_comes_along(shop: Shop) -> None:
    meta = sa.MetaData()
    ends = ("start_id", "stop_id", "over_id")
    trips = sa.Table(
        "trips", meta, sa.Column("id", sa.Integer, primary_key=True), sa.Column("org_id", sa.String(40), nullable=False),
        *(sa.Column(name, sa.Integer) for name in ends),
        *(sa.ForeignKeyConstraint([name], [customers.c.id]) for name in ends),
    )  # fmt: skip
    customers.to_metadata(meta)
    meta.create_all(shop.engine)
    shop.add(trips, *({"id": n, "org_id": "one", **dict.fromkeys(ends, 1)} for n in range(1, 501)))
    shop.datasets.expose(trips, tenant_column="org_id")
    drawn: dict[str, int] = {}

    async def draw(wish: ReservationRequest) -> int:
        drawn[wish.budget] = drawn.get(wish.budget, 0) + wish.need
        return wish.need

    attempt = shop.attempt(claim={"day": {"rows_read": (10**6, 0), "queries": (10**6, 0)}}, draws=draw)
    found = ask(attempt, "db.find", set="trips", limit=500, include=["start", "stop", "over"])
    assert len(found["rows"]) == 500
    assert (attempt.counters.used["rows_read"], attempt.counters.used["queries"]) == (2000, 4)
    assert drawn["rows_read"] >= 2000
    meta.drop_all(shop.engine, tables=[trips])

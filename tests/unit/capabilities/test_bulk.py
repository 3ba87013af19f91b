"""Many rows by one call, and rows that are made or changed: whole or not at all, and sure of what they chose."""

from typing import Any

import pytest
from tests.cases import one_by_one
from tests.unit.capabilities.feeding import ask, settle
from tests.unit.data.shop import Shop, customers, order, orders

from lodger.engine.effects import commit


@pytest.fixture
def shop(shop: Shop) -> Shop:
    shop.add(customers, {"id": 1, "org_id": "one", "email": "a@one.example"})
    shop.add(orders, *(order("one", n, state="open" if n % 2 else "done", items=n) for n in range(1, 7)))
    shop.add(orders, order("two", 7, state="open", items=7))
    return shop


def states(shop: Shop, tenant: str = "one") -> list[str]:
    return [row["state"] for row in shop.rows(orders, org_id=tenant)]


def test_many_rows_are_added_with_their_ids(shop: Shop) -> None:
    attempt = shop.attempt()
    made = ask(attempt, "db.insertMany", set="orders", rows=[{"state": f"s{n}", "items": n} for n in range(300)])
    assert len({row["id"] for row in made}) == 300
    assert ask(attempt, "db.count", set="orders") == 306
    settle(shop, attempt)
    assert len(states(shop)) == 306
    documents = shop.attempt()
    made = ask(documents, "db.insertMany", set="things", rows=[{"id": "a"}, {"n": 1}])
    assert made[0] == {"id": "a"}
    settle(shop, documents)
    assert ask(shop.attempt(), "db.count", set="things") == 2


@pytest.mark.parametrize(
    "wrong",
    [
        [], [{"state": "x"}] * 501, "x", [1], [{}], [{"state": "x", "items": 1}, {"state": "x", "org_id": "two"}],
        [{"state": "x", "items": 1}, {"state": "x" * 50, "items": 1}],
    ],
)  # fmt: skip
def test_one_wrong_row_and_none_is_added(still: Shop, wrong: Any) -> None:
    attempt = still.attempt()
    assert ask(attempt, "db.insertMany", set="orders", rows=wrong)[0] in {"bad_request", "denied"}
    assert not attempt.journal


def test_the_same_id_twice(shop: Shop) -> None:
    attempt = shop.attempt()
    assert ask(attempt, "db.insertMany", set="things", rows=[{"id": "a"}, {"id": "a"}])[0] == "bad_request"
    ask(attempt, "db.insert", set="things", values={"id": "a"})
    assert ask(attempt, "db.insertMany", set="things", rows=[{"id": "b"}, {"id": "a"}])[0] == "bad_request"
    assert ask(attempt, "db.count", set="things") == 1


def test_all_rows_of_a_filter_are_changed_and_no_others(shop: Shop) -> None:
    attempt = shop.attempt()
    ask(attempt, "db.update", set="orders", id=2, changes={"state": "open"})
    assert ask(attempt, "db.updateMany", set="orders", filter={"state": "open"}, changes={"note": "seen"}) == 4
    assert ask(attempt, "db.count", set="orders", filter={"note": "seen"}) == 4
    settle(shop, attempt)
    assert [row["note"] for row in shop.rows(orders)] == ["seen", "seen", "seen", None, "seen", None, None]


def test_rows_that_were_chosen_must_still_be_what_the_filter_saw(shop: Shop) -> None:
    attempt = shop.attempt()
    ask(attempt, "db.updateMany", set="orders", filter={"state": "open"}, changes={"state": "paid"}, line="main.js:9")
    with shop.engine.begin() as connection:
        connection.execute(orders.update().where(orders.c.id == 3).values(state="cancelled"))
    with pytest.raises(commit.ConflictFound) as refused:
        settle(shop, attempt)
    assert refused.value.line == 9
    assert "paid" not in states(shop)


def test_all_rows_of_a_filter_are_removed(shop: Shop) -> None:
    attempt = shop.attempt()
    assert ask(attempt, "db.deleteMany", set="orders", filter={"items": {"gte": 4}}) == 3
    assert ask(attempt, "db.deleteMany", set="orders", filter={"items": {"gte": 4}}) == 0
    settle(shop, attempt)
    assert (len(states(shop)), states(shop, "two")) == (3, ["open"])


EVERY: list[Any] = [
    None,
    {},
    {"and": []},
    {"not": {"or": []}},
    {"or": [{"state": "x"}, {}]},
    {"not": {"state": {"in": []}}},
]


@pytest.mark.parametrize("question", EVERY)
def test_every_row_is_chosen_only_when_that_is_said(shop: Shop, question: Any) -> None:
    attempt = shop.attempt()
    for name, more in (("db.updateMany", {"changes": {"note": "x"}}), ("db.deleteMany", {})):
        code, message = ask(attempt, name, set="orders", filter=question, **more)
        assert code == "filter_missing"
        assert "{ all: true }" in message
    assert not attempt.journal
    assert ask(attempt, "db.updateMany", set="orders", filter=question, changes={"note": "x"}, all=True) == 6
    assert ask(attempt, "db.count", set="orders", filter=question) == 6, "to read every row needs no saying"


UNDEFINED = {"$undefined": True}


@one_by_one(
    ("question", "where"),
    [
        ({"state": UNDEFINED}, "state"), ({"state": {"eq": UNDEFINED}}, "state"), ({"items": {"gte": UNDEFINED}}, "items"),
        ({"state": {"in": ["open", UNDEFINED]}}, "state"), ({"and": [UNDEFINED]}, "filter"), ({"or": UNDEFINED}, "or"),
        ({"not": UNDEFINED}, "not"), ({"not": {"state": UNDEFINED}}, "state"), ({"or": [{"state": "x"}, {"note": UNDEFINED}]}, "note"),
    ],
)  # fmt: skip
def test_a_filter_for_undefined_is_an_error_in_every_call(shop: Shop, question: Any, where: str) -> None:
    attempt = shop.attempt()
    calls: dict[str, Any] = {
        "db.find": {}, "db.count": {}, "db.aggregate": {"sum": ["items"]}, "db.updateMany": {"changes": {"note": "x"}}, "db.deleteMany": {},
    }  # fmt: skip
    for name, more in calls.items():
        for rows in ("orders", "things"):
            code, message = ask(attempt, name, set=rows, filter=question, **more)
            assert code == "filter_undefined", (name, rows, message)
            assert where in message
    assert not attempt.journal


def test_no_more_than_the_budget(shop: Shop) -> None:
    attempt = shop.attempt(budgets={"rows_written": 3})
    for name, more in (("db.updateMany", {"changes": {"note": "x"}}), ("db.deleteMany", {})):
        assert ask(attempt, name, set="orders", filter={}, all=True, **more)[0] == "budget_exceeded"
    assert ask(attempt, "db.insertMany", set="things", rows=[{"n": n} for n in range(4)])[0] == "budget_exceeded"
    assert not attempt.journal
    assert ask(attempt, "db.updateMany", set="orders", filter={"state": "open"}, changes={"note": "x"}) == 3


def test_made_or_changed(shop: Shop) -> None:
    attempt = shop.attempt()
    first = ask(attempt, "db.upsert", set="things", values={"id": "a", "n": 1, "m": 1})
    again = ask(attempt, "db.upsert", set="things", values={"id": "a", "n": 2})
    assert (first, again) == ({"id": "a", "n": 1, "m": 1}, {"id": "a", "n": 2, "m": 1})
    settle(shop, attempt)
    other = shop.attempt()
    assert ask(other, "db.upsert", set="things", values={"id": "a", "k": 1}) == {"id": "a", "n": 2, "m": 1, "k": 1}
    settle(shop, other)
    assert ask(shop.attempt(), "db.count", set="things") == 1


def test_made_or_changed_by_what_is_unique(shop: Shop) -> None:
    attempt = shop.attempt()
    found = ask(attempt, "db.upsert", set="customers", values={"email": "a@one.example"}, on=["email"])
    assert found["id"] == 1
    assert not attempt.journal, "nothing is changed where nothing else was said"
    made = ask(attempt, "db.upsert", set="customers", values={"email": "new@one.example"}, on="email")
    assert made == ask(attempt, "db.upsert", set="customers", values={"email": "new@one.example"}, on="email")
    settle(shop, attempt)
    assert len(shop.rows(customers)) == 2


def test_a_row_that_comes_between_is_a_conflict_that_runs_again(shop: Shop) -> None:
    """The second run finds it and changes it; a plain insert would be refused."""
    attempt = shop.attempt()
    ask(attempt, "db.upsert", set="customers", values={"email": "b@one.example"}, on="email", line="main.js:4")
    shop.add(customers, {"id": 50, "org_id": "one", "email": "b@one.example"})
    with pytest.raises(commit.ConflictFound) as refused:
        settle(shop, attempt)
    assert refused.value.line == 4
    again = shop.attempt()
    assert ask(again, "db.upsert", set="customers", values={"email": "b@one.example"}, on="email")["id"] == 50


@pytest.mark.parametrize(
    ("name", "values", "on"),
    [
        ("customers", {"email": "x"}, None), ("customers", {"email": "x"}, ["id"]), ("customers", {"email": None}, ["email"]),
        ("orders", {"state": "x", "items": 1}, ["state"]), ("customers", {"email": "x"}, ["org_id", "email"]),
        ("things", {"n": 1}, None), ("things", {"id": "a", "n": 1}, ["n"]), ("customers", {"email": "x"}, []),
    ],
)  # fmt: skip
def test_what_rows_cannot_be_the_same_by(still: Shop, name: str, values: Any, on: Any) -> None:
    attempt = still.attempt()
    assert ask(attempt, "db.upsert", set=name, values=values, **({} if on is None else {"on": on}))[0] == "bad_request"
    assert not attempt.journal


def test_described_for_people(shop: Shop) -> None:
    attempt = shop.attempt()
    ask(attempt, "db.updateMany", set="orders", filter={"id": {"lte": 2}}, changes={"state": "x"})
    shown = attempt.effects()
    assert [(each["effect"], each["before"]["state"]) for each in shown] == [("update", "open"), ("update", "done")]

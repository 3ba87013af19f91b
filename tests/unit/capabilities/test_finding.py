"""Options of queries: excluded lists, presence, texts without case, selected columns, groups of days; on every database."""

from typing import Any

import pytest
from tests.cases import one_by_one
from tests.unit.capabilities.feeding import ask, settle
from tests.unit.data.shop import Shop, instant, order, orders

#: A day of 23 hours and one of 25 begin and end where Berlin's do; Kathmandu is 5:45 ahead.
INSTANTS = [
    *("2026-03-28T22:59:59Z", "2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z", "2026-03-29T22:00:00Z"),
    *("2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"),
]
DAYS = ["2026-03-28", "2026-03-29", "2026-03-29", "2026-03-30", "2026-10-25", "2026-10-25", "2026-10-26"]


@pytest.fixture
def shop(shop: Shop) -> Shop:
    notes = ["Straße", "STRASSE", "Ärger", None]
    shop.add(
        orders,
        *(
            order("one", n, state="open" if n % 2 else "done", items=n, note=notes[n % 4], modified=instant(at))
            for n, at in enumerate(INSTANTS, 1)
        ),
        order("two", 8, state="open", items=8, note="strasse", modified=instant(INSTANTS[0])),
    )
    return shop


def documents(shop: Shop) -> None:
    attempt = shop.attempt()
    for number, at in enumerate(INSTANTS, 1):
        values = {"id": f"d{number}", "n": number, "at": {"$instant": at}, "name": ["Ann", "ANNA", "bob"][number % 3]}
        ask(attempt, "db.insert", set="things", values=values)
    ask(attempt, "db.insert", set="things", values={"id": "d8", "at": "2026-03-28", "name": 7})
    settle(shop, attempt)


@one_by_one(
    ("question", "ids"),
    [
        ({"items": {"notIn": [1, 2, 3]}}, [4, 5, 6, 7]),
        ({"items": {"notIn": []}}, [1, 2, 3, 4, 5, 6, 7]),
        ({"note": {"exists": False}}, [3, 7]),
        ({"note": {"exists": True}, "items": {"gt": 4}}, [5, 6]),
        ({"note": {"contains": "stra", "ignoreCase": True}}, [1, 4, 5]),
        ({"note": {"eq": "strasse", "ignoreCase": True}}, [1, 5]),
        ({"note": {"ne": "strasse", "ignoreCase": True}}, [2, 3, 4, 6, 7]),
        ({"note": {"startsWith": "STRASS", "ignoreCase": True}}, [1, 5]),
        ({"note": {"eq": "straße", "ignoreCase": True}}, [4]),
        ({"note": {"eq": "ärger", "ignoreCase": True}}, []),
        ({"note": {"contains": "stra", "ignoreCase": False}}, []),
    ],
)
def test_conditions(still: Shop, question: dict[str, Any], ids: list[int]) -> None:
    shop = still
    if not shop.rows(orders, org_id="one"):
        shop.add(orders, *(order("one", n, state="x", items=n, note=note) for n, note in
                           enumerate(["STRASSE", "Ärger", None, "Straße", "STRASSE", "Ärger", None], 1)))  # fmt: skip
    found = ask(shop.attempt(), "db.find", set="orders", filter=question, limit=100)
    assert [row["id"] for row in found["rows"]] == ids


@pytest.mark.parametrize(
    "wrong",
    [
        {"note": {"exists": 1}}, {"note": {"notIn": "a"}}, {"note": {"ignoreCase": True}}, {"note": {"eq": "a", "ignoreCase": 1}},
        {"note": {"lt": "a", "ignoreCase": True}}, {"items": {"eq": 1, "ignoreCase": True}}, {"note": {"eq": None, "ignoreCase": True}},
        {"note": {"in": ["a"], "ignoreCase": True}}, {"items": {"notIn": list(range(501))}},
    ],
)  # fmt: skip
def test_wrong_conditions(still: Shop, wrong: dict[str, Any]) -> None:
    assert ask(still.attempt(), "db.find", set="orders", filter=wrong)[0] == "bad_request"


def test_selected_columns(shop: Shop) -> None:
    attempt = shop.attempt()
    found = ask(attempt, "db.find", set="orders", select=["state"], limit=2)
    assert found["rows"] == [{"id": 1, "state": "open"}, {"id": 2, "state": "done"}]
    assert ask(attempt, "db.find", set="orders", select=[], limit=1)["rows"] == [{"id": 1}]
    for wrong in (["org_id"], ["state", "nothing"], ["customer.email"]):
        assert ask(attempt, "db.find", set="orders", select=wrong)[0] in {"bad_request", "denied"}
    documents(shop)
    found = ask(shop.attempt(), "db.find", set="things", select=["n"], limit=1)
    assert found["rows"] == [{"id": "d1", "n": 1}]


def counts_by(body: Any, name: str) -> dict[Any, int]:
    return {each["group"][name]: each["count"] for each in body}


def test_groups_of_days_follow_the_zone(shop: Shop) -> None:
    attempt = shop.attempt()
    by_day = {"day": "modified", "tz": "Europe/Berlin"}
    wanted = {day: DAYS.count(day) for day in sorted(set(DAYS))}
    assert counts_by(ask(attempt, "db.aggregate", set="orders", groupBy=by_day), "modified") == wanted
    ask(
        attempt,
        "db.insert",
        set="orders",
        values={"state": "x", "items": 1, "modified": {"$instant": "2026-12-31T23:00:00Z"}},
    )
    ask(attempt, "db.insert", set="orders", values={"state": "x", "items": 1})
    unwritten = counts_by(ask(attempt, "db.aggregate", set="orders", groupBy=[by_day], sum="items"), "modified")
    assert unwritten == {None: 1} | wanted | {"2027-01-01": 1}, "rows that the run has written are in their groups"
    months = counts_by(ask(attempt, "db.aggregate", set="orders", groupBy={"month": "modified"}), "modified")
    assert months == {None: 1, "2026-03-01": 4, "2026-10-01": 3, "2026-12-01": 1}
    weeks = counts_by(
        ask(attempt, "db.aggregate", set="orders", groupBy={"week": "modified", "tz": "Asia/Kathmandu"}), "modified"
    )
    assert weeks == {None: 1, "2026-03-23": 2, "2026-03-30": 2, "2026-10-19": 1, "2026-10-26": 2, "2026-12-28": 1}
    both = ask(
        attempt, "db.aggregate", set="orders", groupBy=["state", {"month": "modified"}], filter={"items": {"lt": 3}}
    )
    assert [(each["group"]["state"], each["group"]["modified"]) for each in both] == [
        ("done", "2026-03-01"), ("open", "2026-03-01"), ("x", None), ("x", "2026-12-01"),
    ]  # fmt: skip
    assert ask(attempt, "db.aggregate", set="orders", groupBy=by_day, filter={"items": 99}) == []


def test_groups_of_days_of_documents(shop: Shop) -> None:
    documents(shop)
    found = counts_by(
        ask(shop.attempt(), "db.aggregate", set="things", groupBy={"day": "at", "tz": "Europe/Berlin"}), "at"
    )
    assert found == {None: 1} | {day: DAYS.count(day) for day in sorted(set(DAYS))}, "a text is no instant"


@pytest.mark.parametrize(
    ("group", "code"),
    [
        ({"day": "note"}, "bad_request"), ({"day": "modified", "tz": "Mars/Base"}, "bad_request"), ({"hour": "modified"}, "bad_request"),
        ({"day": "modified", "week": "modified"}, "bad_request"), ({"day": {"day": "modified"}}, "bad_request"),
        ({"day": 1}, "bad_request"),
        ({"day": "modified", "tz": ["UTC"]}, "bad_request"),
        ([{"day": "modified"}] * 5, "bad_request"), (7, "bad_request"),
    ],
)  # fmt: skip
def test_wrong_groups(still: Shop, group: Any, code: str) -> None:
    assert ask(still.attempt(), "db.aggregate", set="orders", groupBy=group)[0] == code


@pytest.mark.parametrize(
    ("at", "tz", "day"),
    [("9999-12-31T23:59:59Z", "Asia/Tokyo", "9999-12-31"), ("0001-01-01T00:00:00Z", "America/New_York", "0001-01-01")],
)
def test_days_beyond_the_calendar_are_its_ends(shop: Shop, at: str, tz: str, day: str) -> None:
    attempt = shop.attempt()
    ask(attempt, "db.insert", set="things", values={"at": {"$instant": at}})
    for unit in ("day", "week", "month"):
        found = counts_by(ask(attempt, "db.aggregate", set="things", groupBy={unit: "at", "tz": tz}), "at")
        assert sum(found.values()) == 1, unit
        assert unit != "day" or found == {day: 1}


def test_too_many_days(shop: Shop) -> None:
    shop.add(orders, order("one", 20, state="x", items=1, modified=instant("1990-01-01T00:00:00Z")))
    attempt = shop.attempt()
    assert ask(attempt, "db.aggregate", set="orders", groupBy={"day": "modified"})[0] == "too_many_groups"
    assert len(ask(attempt, "db.aggregate", set="orders", groupBy={"month": "modified"})) == 3

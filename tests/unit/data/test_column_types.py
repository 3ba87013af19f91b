"""Every type of column, on both databases: written, read, found, ordered, grouped and changed without losing anything."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.capabilities.feeding import ask, settle
from tests.unit.data.gallery import exposed_gallery
from tests.unit.data.shop import Shop

from lodger.engine.data.sets.dataset import TableDataset

TENANT = "9007199254740993"
#: Of each column two values, the smaller first.
VALUES: dict[str, tuple[Any, Any]] = {
    "crowd": ("a", "b"),
    "mood": ("calm", "o'clock"),
    "size": ("LARGE", "SMALL"),
    "frame": ("oak", "tin"),
    "letters": ("ab", "abcd"),
    "small": (-32768, 32767),
    "large": ("-9223372036854775808", "9223372036854775807"),
    "price": ("0.0000000001", "1234.5000000000"),
    "exact": ("0.125", "12345.678"),
    "loose": ("-1.500", "1.250"),
    "ratio": (0.1, 1e300),
    "shown": (False, True),
    "hung": ({"$instant": "0001-01-01T00:00:00.000000Z"}, {"$instant": "9999-12-31T23:59:59.999999Z"}),
    "local": ({"$instant": "1969-12-31T23:59:59.999999Z"}, {"$instant": "2026-11-22T01:02:03.000004Z"}),
    "day": ("0001-01-01", "9999-12-31"),
    "ref": ("00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "plain": ("00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "extra": ({"a": [1, None, "ü"]}, [False]),
    "tags": ("text", 1.5),
    "scan": ({"$bytes": "AAH/"}, {"$bytes": ""}),
}
UNORDERED = {"extra", "tags", "scan"}


@pytest.fixture
def pictures(bare: Shop) -> Iterator[TableDataset]:
    with exposed_gallery(bare) as made:
        bare.wall()
        if bare.dialect == "postgresql":
            assert made.name in bare.datasets.wall(None).written
        yield made


def test_nothing_of_a_value_is_lost(bare: Shop, pictures: TableDataset) -> None:
    first = bare.attempt(TENANT)
    ids = [
        ask(first, "db.insert", set="pictures", values={name: both[n] for name, both in VALUES.items()})["id"]
        for n in range(2)
    ]
    empty = ask(first, "db.insert", set="pictures", values={"small": 1})["id"]
    settle(bare, first)
    second = bare.attempt(TENANT, budgets={"queries": 1000, "rows_read": 100_000})
    for n in range(2):
        row = ask(second, "db.get", set="pictures", id=ids[n])
        assert {name: row[name] for name in VALUES} == {name: both[n] for name, both in VALUES.items()}
        assert row["twice"] == row["small"] * 2
    for name, (small, large) in VALUES.items():
        if name in UNORDERED:
            continue
        assert found(second, {name: small}) == {ids[0]}, name
        assert found(second, {name: {"in": [large, None]}}) == {ids[1], empty} if name != "small" else {ids[1]}, name
        assert found(second, {name: {"gt": small, "lte": large}}) >= {ids[1]}, name
        page = ask(second, "db.find", set="pictures", order=name, filter={"small": {"ne": 1}}, limit=1)
        assert [row["id"] for row in page["rows"]] == [ids[0]], name
        page = ask(second, "db.find", set="pictures", order=name, filter={"small": {"ne": 1}}, cursor=page["cursor"])
        assert [row["id"] for row in page["rows"]] == [ids[1]], name
        groups = ask(second, "db.aggregate", set="pictures", groupBy=name)
        assert len(groups) == 3, name
        ends = ask(second, "db.aggregate", set="pictures", min=[name], max=[name], filter={"small": {"ne": 1}})
        assert (ends[0]["min"][name], ends[0]["max"][name]) == (small, large), name


def test_every_value_is_changed_and_unset(bare: Shop, pictures: TableDataset) -> None:
    first = bare.attempt(TENANT)
    made = ask(first, "db.insert", set="pictures", values={name: both[0] for name, both in VALUES.items()})["id"]
    settle(bare, first)
    for changes in ({name: both[1] for name, both in VALUES.items()}, dict.fromkeys(VALUES)):
        attempt = bare.attempt(TENANT)
        for name, value in changes.items():
            ask(attempt, "db.update", set="pictures", id=made, changes={name: value})
        settle(bare, attempt)
        row = ask(bare.attempt(TENANT), "db.get", set="pictures", id=made)
        assert {name: row[name] for name in VALUES} == changes


def found(attempt: Any, asked: dict[str, Any]) -> set[str]:
    return {row["id"] for row in ask(attempt, "db.find", set="pictures", filter=asked)["rows"]}

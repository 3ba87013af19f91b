"""Sums and extremes of what documents hold: right, or refused; never null or 0 for want of a number."""

from typing import Any

import pytest
from tests.unit.capabilities.feeding import ask, settle
from tests.unit.data.shop import Shop

MAY, JUNE = "2027-05-01T00:00:00.000000Z", "2027-06-01T00:00:00.000000Z"
THINGS: list[dict[str, Any]] = [
    {"id": "1", "n": 2, "name": "beta", "at": {"$instant": MAY}, "paid": True, "tags": ["x"], "odd": 1},
    {"id": "2", "n": -7.5, "name": "Zeta", "at": {"$instant": JUNE}, "paid": False, "tags": [], "odd": "one"},
    {"id": "3", "name": "älter", "odd": None},
]
EXTREMES: dict[str, tuple[Any, Any]] = {
    "n": (-7.5, 2), "name": ("Zeta", "älter"), "at": ({"$instant": MAY}, {"$instant": JUNE}), "paid": (False, True), "none": (None, None),
}  # fmt: skip


def aggregated(attempt: Any, **asked: Any) -> Any:
    return ask(attempt, "db.aggregate", set="things", **asked)


@pytest.mark.parametrize("committed", [0, 1, 3])
def test_extremes_of_one_type_are_right_and_of_several_refused(shop: Shop, committed: int) -> None:
    before = shop.attempt()
    for thing in THINGS[:committed]:
        ask(before, "db.insert", set="things", values=thing)
    settle(shop, before)
    attempt = shop.attempt()
    for thing in THINGS[committed:]:
        ask(attempt, "db.insert", set="things", values=thing)
    for name, (minimum, maximum) in EXTREMES.items():
        (all_,) = aggregated(attempt, min=name, max=name)
        assert (all_["min"][name], all_["max"][name]) == (minimum, maximum), name
    by_group = aggregated(attempt, groupBy="paid", max="name")
    assert {row["group"]["paid"]: row["max"]["name"] for row in by_group} == {
        None: "älter",
        False: "Zeta",
        True: "beta",
    }
    for name in ("odd", "tags"):
        assert aggregated(attempt, max=name)[0] == "not_comparable"
    assert aggregated(attempt, filter={"id": "2"}, max="odd")[0]["max"] == {"odd": "one"}
    assert aggregated(attempt, sum="n", avg="n") == [{"count": 3, "sum": {"n": -5.5}, "avg": {"n": -2.75}}]
    for name in ("name", "at", "paid", "tags", "odd"):
        for measure in ("sum", "avg"):
            code, message = aggregated(attempt, **{measure: name})
            assert (code, name in message, measure in message) == ("not_numbers", True, True)
    assert aggregated(attempt, sum="none") == [{"count": 3, "sum": {"none": 0}}]

"""Every page of a ledger with 5 000 tenants and 50 000 actions, beside the same page of a nearly empty one, on both databases."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from tests.databases.fixtures import kind, unused_url
from tests.leaks import nothing_left
from tests.web.large_house import ACTIONS, Cost, costs, fill, last_pages, open_house, pages

__all__ = ["kind", "unused_url"]
#: Statements beyond those of the empty ledger; the page of durations asks for the runs of each of its hundred schedules.
MORE_STATEMENTS, COMPARED = 10, 100
#: Thousands of instructions of SQLite: a list in a new order looks at each of 50 000 actions.
MOST_WORK = 4000
MOST_BYTES = 600_000
#: Time of a page as a multiple of the empty ledger's median page: 300 ms of 5 to 6 on a quiet machine.
SLOWEST = 60
TRIES = 4
#: On PostgreSQL, for whose planner lists of few tenants and of thousands differ: these pages, and fewer actions, which take long to write.
OF_PLANNER = {
    "/",
    "/tenants",
    "/schedules",
    "/actions",
    "/audit",
    "/t/acme/schedules",
    "/t/acme/actions",
    "/t/acme/scripts",
}
ACTIONS_THERE = 5000


@pytest.fixture(autouse=True, scope="module")
def no_leaks(kind: str) -> Iterator[None]:
    """A server of the session is not left behind."""
    with nothing_left():
        yield


def test_pages_of_a_large_ledger_cost_little_more_than_those_of_an_empty_one(
    kind: str, unused_url: str, tmp_path: Path
) -> None:
    with open_house(unused_url, tmp_path) as made:
        asked, actions = pages(made), ACTIONS
        if kind == "postgresql":
            actions = ACTIONS_THERE
            asked = [each for each in asked if each.partition("?")[0] in OF_PLANNER and each.count(":") < 2]
        empty = costs(made, asked)
        usual = median(each.seconds for each in empty.values())
        fill(made, actions)
        full = costs(made, [*asked, *last_pages(made, actions)])
        for _ in range(TRIES):
            slow = [path for path, cost in full.items() if cost.seconds > SLOWEST * usual]
            again = costs(made, slow)
            full |= {path: min(cost, full[path], key=lambda each: each.seconds) for path, cost in again.items()}
    unlike = {}
    for path, cost in full.items():
        beside = empty.get(path) or empty[path.partition("?")[0]]
        statements = beside.statements + (COMPARED if "durations" in path else MORE_STATEMENTS)
        allowed = Cost(statements, MOST_WORK, MOST_BYTES, SLOWEST * usual)
        if any(getattr(cost, name) > getattr(allowed, name) for name in Cost.__slots__):
            unlike[path] = cost, allowed
    assert unlike == {}

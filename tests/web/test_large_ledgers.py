"""Every page of a ledger with 5 000 tenants and a long history, beside the same page with a short one and with none, on both databases."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from tests.databases.fixtures import kind, unused_url
from tests.leaks import nothing_left
from tests.store.query_plans import without_autovacuum
from tests.web.large_house import ACTIONS, TOP, Cost, add_actions, costs, fill, late_pages, open_house, pages

from lodger.engine.store.actions import actions

__all__ = ["kind", "unused_url"]
#: Statements beyond those of the empty ledger; the page of durations asks for the runs of each of its hundred schedules.
MORE_STATEMENTS, COMPARED = 10, 100
MOST_BYTES = 600_000
#: Time of a page as a multiple of the empty ledger's median page: 300 ms of 5 to 6 on a quiet machine.
SLOWEST = 60
TRIES = 4
#: Looked at by a page of actions: fewer than a short history has.
LOOKED_AT = 300
#: Actions of the long history as a multiple of those of the short one; all that it has more are older. A page's work may be more by a part,
#: because indexes are deeper, and by that of other plans for as many actions.
TIMES, RATIO, MORE_WORK = 8, 1.2, {"sqlite": 100, "postgresql": 10 * LOOKED_AT}
#: Pages that show up to so many runs of each schedule, or look up one of each tenant: a short history has fewer.
FULLER, FULL = ("durations", "/t/acme/schedules", "latest"), 4
#: On PostgreSQL, for whose planner lists of few tenants and of thousands differ: these pages.
OF_PLANNER = {
    "/",
    "/t/acme",
    "/tenants",
    "/actions",
    "/audit",
    "/t/acme/schedules/s",
    "/t/acme/actions",
}
#: The charts of 24 hours and of 7 days are those of 30 days with another bound.
OTHER_RANGES = ("range=24h", "range=7d")


@pytest.fixture(autouse=True, scope="module")
def no_leaks(kind: str) -> Iterator[None]:
    """A server of the session is not left behind."""
    with nothing_left():
        yield


def test_pages_of_a_long_history_cost_what_those_of_a_short_one_do(
    kind: str, unused_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MOST_LOOKED_AT", LOOKED_AT)
    with open_house(unused_url, tmp_path) as made:
        # Lists of one tenant's operations are those of all tenants with a condition more.
        asked = [each for each in pages(made) if not each.startswith("/t/acme/operations/")]
        if kind == "postgresql":
            without_autovacuum(made.engine.context.database)
            asked = [each for each in asked if each.partition("?")[0] in OF_PLANNER or "/actions/" in each]
            asked = [each for each in asked if not each.endswith(OTHER_RANGES)]
        empty = costs(made, asked)
        usual = median(each.seconds for each in empty.values())
        fill(made)
        late = late_pages(made)
        empty |= {late[path]: cost for path, cost in empty.items() if path in late}
        short = costs(made, empty)
        add_actions(made, TOP - TIMES * ACTIONS, TOP - ACTIONS)
        long = costs(made, empty)
        for _ in range(TRIES):
            slow = [path for path, cost in long.items() if cost.seconds > SLOWEST * usual]
            again = costs(made, slow)
            long |= {path: min(cost, long[path], key=lambda each: each.seconds) for path, cost in again.items()}
    unlike = {}
    for path, cost in long.items():
        statements = empty[path].statements + (COMPARED if "durations" in path else MORE_STATEMENTS)
        ratio = FULL if any(each in path for each in FULLER) else RATIO
        allowed = Cost(statements, round(short[path].work * ratio) + MORE_WORK[kind], MOST_BYTES, SLOWEST * usual)
        if any(getattr(cost, name) > getattr(allowed, name) for name in Cost.__slots__):
            unlike[path] = cost, allowed
    assert unlike == {}

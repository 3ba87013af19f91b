"""Finished actions cost tick, claim and finish nothing, on both databases.

``python bench/developer/growth.py --rows 10000000`` measures it.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.store.bench import Bench
from tests.store.query_plans import plans

from lodger.engine.store.schedules import schedule_rows

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench" / "developer"))
import growth

#: Tables with rows that a slot changes, and their settings.
UPDATED = """
SELECT t.relname, c.reloptions, t.n_tup_upd FROM pg_stat_user_tables t JOIN pg_class c ON c.oid = t.relid
WHERE t.relname LIKE 'lodger%'
"""


def updated_tables(bench: Bench) -> dict[str, tuple[list[str], int]]:
    """Storage options of each table, and how many of its rows were ever updated."""
    with bench.engine.context.database.read() as connection:
        return {name: (options or [], count) for name, options, count in connection.execute(text(UPDATED))}


def test_the_work_of_a_slot_stays_the_same(bench: Bench) -> None:
    """Counted by the database, so that no other process changes it. Pages grow with the depth of an index's tree, not with its rows."""
    server = bench.engine.context.database.driver.name == "postgresql"
    before = updated_tables(bench) if server else {}
    for tenant in range(2):
        bench.tenant(f"t{tenant}")
        for number in range(20):
            bench.schedule("every 60s", tenant_id=f"t{tenant}", name=f"s{number}")
    work = growth.Work(bench)
    counted: list[dict[str, int]] = []
    for first, rows in ((1, 1000), (1001, 16_000)):
        growth.fill(bench, rows, first)
        growth.measure(bench)
        found = growth.measure(bench, work)
        counted.append({name: count["blocks" if server else "steps"] for name, (_seconds, count) in found.items()})
    small, large = counted
    assert min(small.values()) > 500, "the counter counts"
    for name in small:
        assert large[name] < small[name] * (2 if server else 1.1), (name, small, large)
    if server:
        # The database may have served another test before.
        after = updated_tables(bench)
        updated = {name: options for name, (options, count) in after.items() if count > before[name][1] + 3}
        assert {"lodger_actions", "lodger_turns", "lodger_schedule_clock"} <= set(updated)
        for name, options in updated.items():
            assert "autovacuum_vacuum_scale_factor=0.02" in options, (
                f"{name} changes at every slot and is vacuumed late"
            )


@contextmanager
def without_indexes_of_tenants(bench: Bench) -> Iterator[None]:
    """Leave PostgreSQL's planner only the indexes of actions that begin with the id; what it would choose depends on its statistics."""
    change = text(
        "UPDATE pg_index SET indisvalid = :valid WHERE indrelid = CAST('lodger_actions' AS regclass) "
        "AND indkey[0] <> (SELECT attnum FROM pg_attribute WHERE attrelid = indrelid AND attname = 'id')"
    )
    database = bench.engine.context.database
    with database.write() as connection:
        connection.execute(change, {"valid": False})
    try:
        yield
    finally:
        with database.write() as connection:
            connection.execute(change, {"valid": True})


def test_postgresql_cannot_walk_all_tenants_for_the_page_of_one(bench: Bench) -> None:
    """It did for one with a fifth of all actions: the index of ids seems cheap to its planner, because rows lie in that order."""
    if bench.engine.context.database.driver.name != "postgresql":
        pytest.skip("a plan in PostgreSQL's words")
    bench.schedule("every 60s", tenant_id=bench.tenant("t0"), name="s")
    growth.fill(bench, 500)
    of_all = re.compile(r"Index.* Scan .*using ix_lodger_actions_(undone_)?id\b")
    listed = bench.engine.actions.list
    with without_indexes_of_tenants(bench):
        for wanted in ("nothing", "state:failed nothing", "schedule:s nothing", "sort:due", ""):
            found = plans(bench, lambda wanted=wanted: listed("t0", filter=wanted, limit=50))
            assert [each for each in found if of_all.search(each)] == [], wanted
            found = plans(bench, lambda wanted=wanted: listed(filter=wanted, limit=50))
            assert any(of_all.search(each) for each in found), (wanted, found)


def test_the_past_of_a_schedule_is_counted_up_to_a_bound(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_rows, "MAX_COUNTED", 50)
    bench.tenant("acme")
    schedule = bench.schedule("every 60s")
    growth.fill(bench, 200)
    counted = bench.engine.schedules.counters(schedule.tenant_id, schedule.name)
    assert (counted.actions["done"], counted.complete) == (50, False)

"""Finished actions cost tick, claim and finish nothing: each of their statements finds its rows by an index, on both databases.

``python bench/developer/growth.py --rows 10000000`` measures it.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from tests.store.bench import Bench
from tests.store.query_plans import plans

from lodger.engine.store.schedules import schedule_rows

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench" / "developer"))
import growth

HISTORY = ("lodger_actions", "lodger_attempts", "lodger_attempt_logs")
#: A plan that reads one of them whole; an index of what is not finished is small.
_ALL = "lodger_(?:actions|attempts|attempt_logs)"
WHOLE = re.compile(
    rf"Seq Scan on {_ALL}|\bSCAN {_ALL}\b(?! USING (?:COVERING )?INDEX ix_lodger_actions_(?:startable|running|leased|expiring))"
)

#: Tables with rows that a slot changes, and their settings.
UPDATED = """
SELECT t.relname, c.reloptions, t.n_tup_upd FROM pg_stat_user_tables t JOIN pg_class c ON c.oid = t.relid
WHERE t.relname LIKE 'lodger%'
"""


def updated_tables(bench: Bench) -> dict[str, tuple[list[str], int]]:
    """Storage options of each table, and how many of its rows were ever updated."""
    with bench.engine.context.database.read() as connection:
        return {name: (options or [], count) for name, options, count in connection.execute(text(UPDATED))}


def test_no_statement_of_a_slot_reads_the_history(bench: Bench) -> None:
    for tenant in range(2):
        bench.tenant(f"t{tenant}")
        for number in range(30):
            bench.schedule("every 60s" if number < 3 else "every 1d", tenant_id=f"t{tenant}", name=f"s{number}")
    database = bench.engine.context.database
    growth.fill(bench, 6000)
    bench.clock.advance(60)
    whole: list[str] = []
    asked: list[str] = []
    explaining = "EXPLAIN " if database.driver.name == "postgresql" else "EXPLAIN QUERY PLAN "

    def explain(_connection: Any, cursor: Any, statement: str, values: Any, _context: Any, many: bool) -> None:
        name = statement.lstrip().split(" ", 1)[0]
        if name not in {"SELECT", "WITH", "UPDATE", "DELETE", "INSERT"} or not any(
            table in statement for table in HISTORY
        ):
            return
        asked.append(statement)
        other = cursor.connection.cursor()
        other.execute(explaining + statement, values[0] if many else values)
        plan = "\n".join(str(row[-1]) for row in other.fetchall())
        other.close()
        if WHOLE.search(plan):
            whole.append(f"{statement}\n{plan}")

    event.listen(database.engine, "before_cursor_execute", explain)
    bench.tick()
    claimed = bench.claim()
    bench.commit(*claimed)
    assert len(claimed) == 6
    assert len(asked) > 6
    assert whole == []
    with database.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM lodger_actions WHERE state = 'done'")) == 6006


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
    for first, rows in ((1, 1000), (1001, 31_000)):
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


def reads_of_pages(bench: Bench, *, server: bool) -> dict[str, Callable[[], object]]:
    """Return reads of the pages, by name, that cost the same whatever has finished."""
    engine = bench.engine
    tenants, schedules, actions = engine.tenants, engine.schedules, engine.actions
    schedule, action = schedules.get("t0", "s0").id, actions.list("t0", limit=1)[0].id
    reads: dict[str, Callable[[], object]] = {
        "tenants": lambda: tenants.list(limit=20), "tenant": lambda: tenants.get("t0"), "usage": lambda: tenants.usage("t0"),
        "schedules": lambda: schedules.list("t0", limit=20), "schedule": lambda: schedules.get("t0", "s0"),
        "last run": lambda: schedules.last_run("t0", "s0"),
        "recent": lambda: schedules.recent("t0", schedule_ids=[schedule], runs=5),
        "actions": lambda: actions.list(limit=20), "actions of a tenant": lambda: actions.list("t0", limit=20),
        "action": lambda: actions.get("t0", action), "attempts": lambda: actions.attempts("t0", action),
        "logs": lambda: actions.logs("t0", action), "errors": lambda: actions.errors("t0"), "running": actions.running,
        "overdue": actions.overdue, "metrics": engine.metrics.read, "nodes": engine.nodes.list,
        "audit": lambda: engine.audit.list(limit=20),
    }  # fmt: skip
    return reads | ({"failed": lambda: actions.list(filter="state:failed", limit=20)} if server else {})


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


def test_what_a_page_reads_does_not_grow_with_the_history(bench: Bench) -> None:
    server = bench.engine.context.database.driver.name == "postgresql"
    for tenant in range(2):
        bench.tenant(f"t{tenant}")
        for number in range(20):
            bench.schedule("every 60s", tenant_id=f"t{tenant}", name=f"s{number}")
    work = growth.Work(bench)
    counted: list[dict[str, int]] = []
    for first, rows in ((1, 1000), (1001, 12_000)):
        growth.fill(bench, rows, first)
        found = {}
        for name, read in reads_of_pages(bench, server=server).items():
            read()
            work.begin()
            read()
            found[name] = work.done().get("blocks" if server else "steps", 0)
        counted.append(found)
    small, large = counted
    # Beside the depth of indexes: a page of each that is looked at.
    assert {name for name in small if large[name] > 1.2 * small[name] + (20 if server else 200)} == set(), counted


def test_the_past_of_a_schedule_is_read_from_the_end_of_an_index(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_rows, "MAX_COUNTED", 50)
    bench.tenant("acme")
    schedule = bench.schedule("every 60s")
    growth.fill(bench, 2000)
    asked: list[tuple[str, Any]] = []
    database = bench.engine.context.database

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_more: Any) -> None:
        asked.append((statement, values))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        counted = bench.engine.schedules.counters(schedule.tenant_id, schedule.name)
        bench.engine.schedules.last_run(schedule.tenant_id, schedule.name)
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    assert counted.actions["done"] == 50
    assert not counted.complete
    of_actions = [(statement, values) for statement, values in asked if "FROM lodger_actions" in statement]
    assert len(of_actions) == 2
    explain = "EXPLAIN " if database.driver.name == "postgresql" else "EXPLAIN QUERY PLAN "
    with database.read() as connection:
        plans = [
            "\n".join(str(row) for row in connection.exec_driver_sql(explain + text, values))
            for text, values in of_actions
        ]
    assert "ix_lodger_actions_started" in plans[1]
    assert not any("Seq Scan on lodger_actions" in plan or "SCAN lodger_actions" in plan for plan in plans)

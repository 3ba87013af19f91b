"""Fills a ledger with schedules as ``schedules.create`` writes them, without waiting for it a million times.

One tenant with one script and one schedule is made by the engine; its rows are the pattern of all others.
"""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table, bindparam, select

from lodger.engine.core.clock import from_us
from lodger.engine.recurrence.rule import RuleSpec, ScheduleRules
from lodger.engine.store.revision_cache import encode_rules
from lodger.engine.store.schema.scheduling import (
    schedule_clock,
    schedule_revisions,
    schedules,
    script_versions,
    scripts,
    tenants,
    turns,
)
from lodger.engine.sync import Engine

TABLES = (tenants, turns, scripts, script_versions, schedules, schedule_revisions, schedule_clock)
_CHUNK = 5000
#: Idle schedules have their next slot so far away, days.
_FAR = 30
Row = dict[str, Any]


def fill(engine: Engine, number: int, tenant_count: int, source: str) -> None:
    """Make so many tenants with a script each, and schedules that sleep for a month."""
    engine.tenants.create("pattern")
    engine.scripts.put("pattern", "job", source)
    far = from_us(engine.context.clock.now_us()) + timedelta(days=_FAR)
    rules = RuleSpec("every 1d", dtstart=far.isoformat())
    engine.schedules.create("pattern", "pattern", script="job", rules=rules)
    with engine.context.database.write() as connection:
        pattern = {table.name: _one(connection, table) for table in TABLES}
    for table in (tenants, turns, scripts, script_versions):
        _insert(engine, table, _of_tenants(pattern[table.name], tenant_count))
    for table in (schedules, schedule_revisions, schedule_clock):
        _insert(engine, table, _of_schedules(pattern[table.name], number, tenant_count))
    with engine.context.database.write() as connection:
        connection.exec_driver_sql("ANALYZE")


def storm(engine: Engine, number: int, tenant_count: int, at_us: int) -> None:
    """Let so many schedules, of as many tenants as there are, have a slot each at one instant, all by one rule."""
    revision, clock = schedule_revisions, schedule_clock
    own = (clock.c.tenant_id == bindparam("k_tenant"), clock.c.schedule_id == bindparam("k_schedule"))
    rule = RuleSpec("every 1d", dtstart=from_us(at_us).isoformat())
    rows = []
    for each in range(number):
        key = {"k_tenant": f"t{each % tenant_count:06}", "k_schedule": _id(each)}
        rows.append(key | {"rules": encode_rules(ScheduleRules((rule,))), "next_at": at_us})
    with engine.context.database.write() as connection:
        mine = (revision.c.tenant_id == bindparam("k_tenant"), revision.c.schedule_id == bindparam("k_schedule"))
        connection.execute(revision.update().where(*mine).values(rules=bindparam("rules")), rows)
        connection.execute(clock.update().where(*own).values(next_at=bindparam("next_at")), rows)


def _one(connection: Connection, table: Table) -> Row:
    column = table.c.tenant_id if "tenant_id" in table.c else table.c.id
    return dict(connection.execute(select(table).where(column == "pattern")).mappings().one())


def _of_tenants(pattern: Row, number: int) -> Iterator[Row]:
    for each in range(number):
        tenant = f"t{each:06}"
        row = pattern | ({"tenant_id": tenant} if "tenant_id" in pattern else {"id": tenant, "name": tenant})
        yield row


def _of_schedules(pattern: Row, number: int, tenant_count: int) -> Iterator[Row]:
    key = "schedule_id" if "schedule_id" in pattern else "id"
    for each in range(number):
        row = pattern | {"tenant_id": f"t{each % tenant_count:06}", key: _id(each)}
        if "name" in row:
            row["name"] = f"s{each}"
        if row.get("next_at") is not None:
            row["next_at"] += each * 1000
        yield row


def _id(number: int) -> str:
    return f"01900000-0000-7000-8000-{number:012x}"


def _insert(engine: Engine, table: Table, rows: Iterator[Row]) -> None:
    while some := list(islice(rows, _CHUNK)):
        with engine.context.database.write() as connection:
            connection.execute(table.insert(), some)

"""Errors of failed actions, grouped by script, message and place."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, case, func, select

from lodger.engine.core.clock import from_us
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.drivers.expressions import indexed_by
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema import scheduling as tables

#: Most groups, most different texts (with their stacks) that are read for them, and most failed actions that are counted.
MAX_GROUPS, MAX_TEXTS, MAX_COUNTED = 50, 500, 10_000
#: Parts of the time for a trend.
PARTS = 12
_a = tables.actions.c
#: Tenant, script, name, message, file and line of an error.
_Key = tuple[Any, Any, Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Failed actions of one script with the same error.

    Attributes:
        line: line of ``file``; None if it is not known.
        actions: number of failed actions.
        trend: number of failed actions in each of :data:`PARTS` equal parts of the time, oldest first.
        first_version, last_version: versions of the script that failed so first and last, by their number; None if not known.
        is_new: whether the first of them was stored in this time, and replaced another that did not fail so.
    """

    tenant_id: str
    script: str | None
    name: str
    message: str
    file: str | None
    line: int | None
    actions: int
    first_at: datetime
    last_at: datetime
    first_version: int | None
    last_version: int | None
    is_new: bool
    trend: tuple[int, ...]

    def order(self) -> tuple[float, ...]:
        """Return the sort key: the most frequent first, of equals the one that was last."""
        return -self.actions, -self.last_at.timestamp()


def groups(connection: Connection, tenant_id: str | None, since_us: int, now_us: int) -> list[ErrorGroup]:
    """Return the errors of the newest MAX_COUNTED actions that have failed since an instant, the most frequent first."""
    part = max(1, (now_us - since_us) // PARTS + 1)
    ends = [since_us + part * (number + 1) for number in range(PARTS)]
    script = tables.scripts.c
    newest = (
        select(_a.tenant_id, _a.script_id, _a.script_version, _a.error, _a.finished_us)
        .where(tables.is_one_of(_a.state, tables.FAILED), _a.state == "failed", _a.finished_us >= since_us, _a.error.is_not(None))
        .order_by(_a.finished_us.desc())
        .limit(MAX_COUNTED)
    )  # fmt: skip
    driver_of(connection).allow_scans(connection)
    if tenant_id is not None:
        newest = newest.where(_a.tenant_id == tenant_id)
    # SQLite may take the tenant's index of all its actions or, with equal statistics, that of all ends.
    failed = indexed_by(newest, tables.actions, "ix_lodger_actions_failed").subquery("failed").c
    statement = (
        select(
            failed.tenant_id, failed.script_id, script.name, failed.error, func.count().label("actions"),
            func.min(failed.finished_us).label("first_us"), func.max(failed.finished_us).label("last_us"),
            func.min(failed.script_version).label("first_version"), func.max(failed.script_version).label("last_version"),
            *(func.sum(case((failed.finished_us < end, 1), else_=0)).label(f"until_{at}") for at, end in enumerate(ends)),
        )
        .outerjoin(tables.scripts, (script.tenant_id == failed.tenant_id) & (script.id == failed.script_id))
        .group_by(failed.tenant_id, failed.script_id, script.name, failed.error)
        .order_by(func.count().desc())
        .limit(MAX_TEXTS)
    )  # fmt: skip
    each, version = statement.subquery("each"), tables.script_versions.c
    same = (version.tenant_id == each.c.tenant_id) & (version.script_id == each.c.script_id)
    dated = select(each, version.created_us).outerjoin_from(
        each, tables.script_versions, same & (version.version == each.c.first_version)
    )
    found: dict[_Key, list[AnyRow]] = {}
    for row in connection.execute(dated.order_by(each.c.actions.desc())).all():
        error = json.loads(row.error)
        key = (row.tenant_id, row.name, error["name"], error["message"], error["file"], error["line"])
        found.setdefault(key, []).append(row)
    made = (_group(key, rows, since_us) for key, rows in found.items())
    return sorted(made, key=ErrorGroup.order)[:MAX_GROUPS]


def _group(key: _Key, rows: Sequence[AnyRow], since_us: int) -> ErrorGroup:
    """Return the group of rows with the same error; their texts differ in their stacks."""
    until = [0, *(sum(int(getattr(row, f"until_{at}")) for row in rows) for at in range(PARTS))]
    versions = [each for row in rows for each in (row.first_version, row.last_version) if each is not None]
    first = min(rows, key=lambda row: row.first_version or 0)
    return ErrorGroup(
        *key,
        actions=sum(row.actions for row in rows),
        first_at=from_us(min(row.first_us for row in rows)),
        last_at=from_us(max(row.last_us for row in rows)),
        first_version=min(versions, default=None),
        last_version=max(versions, default=None),
        is_new=(first.first_version or 0) > 1 and (first.created_us or 0) >= since_us,
        trend=tuple(later - earlier for earlier, later in pairwise(until)),
    )

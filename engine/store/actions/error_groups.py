"""Errors of failed actions, grouped by script, message and place."""

import json
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from sqlalchemy import Connection, case, func, select

from lodger.engine.core.clock import from_us
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.drivers.expressions import indexed_by
from lodger.engine.store.schema import scheduling as tables

#: Most groups, most different texts (with their stacks) that are read for them, and most failed actions that are counted.
MAX_GROUPS, MAX_TEXTS, MAX_COUNTED = 50, 500, 10_000
#: Parts of the time for a trend.
PARTS = 12
_a = tables.actions.c


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
    driver = driver_of(connection)
    driver.allow_scans(connection)
    if tenant_id is not None:  # the index of failures, not the tenant's of all its actions
        newest = newest.where(driver.unindexed(_a.tenant_id) == tenant_id)
    # With equal statistics SQLite may take the index of all ends.
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
    found: dict[tuple[object, ...], ErrorGroup] = {}
    for row in connection.execute(dated.order_by(each.c.actions.desc())).all():
        error = json.loads(row.error)
        key = (row.tenant_id, row.name, error["name"], error["message"], error["file"], error["line"])
        before = found.get(key)
        until = [0, *(int(getattr(row, f"until_{at}")) for at in range(PARTS))]
        trend = [later - earlier for earlier, later in pairwise(until)]
        is_new = (row.first_version or 0) > 1 and (row.created_us or 0) >= since_us
        if before is not None and (before.first_version or 0) <= (row.first_version or 0):
            is_new = before.is_new
        versions = [each for each in (row.first_version, row.last_version) if each is not None]
        if before is not None:
            versions += [each for each in (before.first_version, before.last_version) if each is not None]
        found[key] = ErrorGroup(
            row.tenant_id, row.name, error["name"], error["message"], error["file"], error["line"],
            row.actions + (before.actions if before else 0),
            min(from_us(row.first_us), before.first_at) if before else from_us(row.first_us),
            max(from_us(row.last_us), before.last_at) if before else from_us(row.last_us),
            min(versions, default=None), max(versions, default=None), is_new,
            tuple(map(sum, zip(trend, before.trend, strict=True))) if before else tuple(trend),
        )  # fmt: skip
    return sorted(found.values(), key=ErrorGroup.order)[:MAX_GROUPS]

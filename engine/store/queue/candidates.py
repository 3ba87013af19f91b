"""Candidates of a claim: the first startable actions of each tenant's queue, and the number of running actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from lodger.engine.policy.conduct import Priority
from lodger.engine.store.bulk import ManyRows
from lodger.engine.store.drivers import Driver
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import actions, is_running, is_startable, script_may_start


@dataclass(slots=True, eq=False)
class TenantQueue:
    """The queue of a tenant's actions that require the same labels.

    Attributes:
        maximum: maximum number of actions to return.
    """

    tenant_id: str
    requires: str
    maximum: int


_COLUMNS = (
    actions.c.tenant_id, actions.c.id, actions.c.schedule_id, actions.c.revision, actions.c.origin, actions.c.slot,
    actions.c.due_at, actions.c.script_id, actions.c.script_version, actions.c.params, actions.c.step, actions.c.handed,
    actions.c.tenant_faults, actions.c.engine_faults, actions.c.conflicts, actions.c.reason, actions.c.requires,
    actions.c.priority, (actions.c.attempt + sa.literal_column("1")).label("attempt"),
)  # fmt: skip


def _first_of_priorities(rows: Any, maximum: Any) -> Any:
    """Return the query of a queue's first due actions of each priority.

    One index lookup per priority is faster than a sort of all waiting actions.
    """
    by_rank = [
        sa.select(actions.c.id, actions.c.due_at, sa.literal_column(str(int(rank))).label("rank"))
        .where(
            actions.c.tenant_id == rows.c.tenant,
            actions.c.requires == rows.c.labels,
            is_startable,
            script_may_start,
            actions.c.priority == sa.literal_column(str(int(rank))),
            actions.c.due_at <= sa.bindparam("now", type_=sa.BigInteger),
        )
        .order_by(actions.c.due_at, actions.c.id)
        .limit(maximum)
        .correlate(rows)
        .subquery()
        for rank in Priority
    ]
    return sa.union_all(*map(sa.select, by_rank)).subquery()


def _of_queues(rows: Any, driver: Driver) -> sa.Select[Any]:
    """Return the query of the first due actions of these queues."""
    return _limit_each(rows) if driver.has_row_locks else _one_limit(rows)


def _one_limit(rows: Any) -> sa.Select[Any]:
    """Return the query with one limit for all queues, for databases without LATERAL."""
    maximum = sa.bindparam("total_maximum", type_=sa.BigInteger)
    ranked = _first_of_priorities(rows, maximum)
    first = sa.select(ranked.c.id).order_by(ranked.c.rank, ranked.c.due_at, ranked.c.id).limit(maximum).correlate(rows)
    return (
        sa.select(*_COLUMNS)
        .select_from(rows)
        .where(actions.c.tenant_id == rows.c.tenant, actions.c.id.in_(first.scalar_subquery()))
    )


def _limit_each(rows: Any) -> sa.Select[Any]:
    """Return the query of the first due actions of each queue, with a limit for each.

    Its names are short: psycopg parses a statement of more than 4096 characters at each execution.
    """
    ranked = _first_of_priorities(rows, rows.c.maximum)
    first = (
        sa.select(ranked)
        .order_by(ranked.c.rank, ranked.c.due_at, ranked.c.id)
        .limit(rows.c.maximum)
        .correlate(rows)
        .lateral("f")
    )
    # OFFSET 0 makes the planner look up each row by key, whatever its statistics are.
    found = (
        sa.select(*_COLUMNS)
        .where(actions.c.tenant_id == rows.c.tenant, actions.c.id == first.c.id)
        .correlate(rows, first)
        .offset(sa.literal_column("0"))
        .lateral("a")
    )
    return (
        sa.select(found)
        .select_from(rows.join(first, sa.true()).join(found, sa.true()))
        .order_by(rows.c.tenant, first.c.rank, first.c.due_at, first.c.id)
    )


_first = ManyRows(
    {"tenant": actions.c.tenant_id, "labels": actions.c.requires, "maximum": actions.c.due_at}, _of_queues
)


_of_handed = Prepared(lambda driver: _limit_each(_handed_queues(driver)))
_running_of_handed = Prepared(
    lambda driver: _counting_running(actions.c.tenant_id == sa.any_(driver.handed("queues", actions.c.tenant_id.type)))
)
_running = Prepared(lambda driver: _counting_running(driver.among(actions.c.tenant_id, "tenants")))


def _counting_running(mine: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Return the query that counts the running actions of the tenants that satisfy a condition."""
    counted = sa.select(actions.c.tenant_id, sa.func.count().label("number"))
    return counted.where(mine, is_running).group_by(actions.c.tenant_id)


def _handed_queues(driver: Driver) -> Any:
    """Return the queues that were handed on, each with an even share of the free slots, as a table like that of :data:`_first`."""
    tenant_ids = driver.handed("queues", actions.c.tenant_id.type)
    each = (
        sa.func.unnest(tenant_ids)
        .table_valued(sa.column("tenant", actions.c.tenant_id.type), name="each")
        .render_derived()
    )
    free = sa.bindparam("free", type_=sa.BigInteger)
    share = (free + sa.func.cardinality(tenant_ids) - sa.literal_column("1")) / sa.func.cardinality(tenant_ids)
    return sa.select(
        each.c.tenant, sa.literal_column("''", actions.c.requires.type).label("labels"), share.label("maximum")
    ).subquery("given")


@dataclass(slots=True)
class Ahead:
    """Answers about the queues that were handed on as ``queues``: their running actions, and the first of those that may start."""

    running: Callable[[], dict[str, int]]
    first: Callable[[], list[AnyRow]]

    @classmethod
    def ask(cls, connection: sa.Connection, free: int, now_us: int) -> Ahead:
        """Ask for an even share of the free slots of each queue."""
        busy = _running_of_handed.ask(connection, {})
        first = _of_handed.ask(connection, {"free": free, "now": now_us})
        return cls(lambda: {row.tenant_id: row.number for row in busy()}, first)


def candidates(
    connection: sa.Connection, queues: Sequence[TenantQueue], now_us: int, ahead: Sequence[AnyRow] | None = None
) -> dict[tuple[str, str], list[AnyRow]]:
    """Return the first ``maximum`` due actions of each queue, perhaps more, in start order.

    Args:
        ahead: the answer of :class:`Ahead`, if it was asked.
    """
    rows = [
        {"tenant": queue.tenant_id, "labels": queue.requires, "maximum": queue.maximum}
        for queue in queues
        if queue.maximum > 0
    ]
    if not rows:
        return {}
    found: dict[tuple[str, str], list[AnyRow]] = {}
    params = {"now": now_us, "total_maximum": max(queue.maximum for queue in queues)}
    for row in _first.rows(connection, rows, params) if ahead is None else ahead:
        found.setdefault((row.tenant_id, row.requires), []).append(row)
    for each in found.values():
        each.sort(key=lambda row: (row.priority, row.due_at, row.id))
    return found


def running(connection: sa.Connection, tenant_ids: Iterable[str]) -> dict[str, int]:
    """Return the number of running actions of these tenants; tenants without any are absent."""
    wanted = sorted(set(tenant_ids))
    if not wanted:
        return {}
    return {row.tenant_id: row.number for row in _running.rows(connection, {"tenants": wanted})}

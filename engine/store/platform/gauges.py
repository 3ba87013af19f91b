"""Gauges of the ledger for operators: waiting, running and overdue actions, nodes, outbox, blocked sessions."""

from functools import partial

from sqlalchemy import Connection, bindparam, func, select

from lodger.engine.core.metrics import Metric, Sample, metric
from lodger.engine.store.connection import lock_waits
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.context import StoreContext
from lodger.engine.store.queue.ready_queue import GRACE_US
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.schema.scheduling import (
    actions,
    is_running,
    is_startable,
    schedule_clock,
    tenants,
    turns,
    usage_days,
)  # fmt: skip
from lodger.engine.store.schema.script_data import outbox, sealed
from lodger.engine.store.usage.usage import DAY_US

# Each query reads a partial index: history does not slow it down.
_counted = {
    "startable": select(func.count()).select_from(actions).where(is_startable),
    "running": select(func.count()).select_from(actions).where(is_running),
    "sealed": select(func.count()).select_from(sealed),
}
_outbox = (
    select(outbox.c.state, func.count())
    .where(outbox.c.state.in_(("queued", "sending", "failed")))
    .group_by(outbox.c.state)
)


def read(context: StoreContext, connection: Connection, now_us: int) -> list[Metric]:
    """Return the gauges, in the order of the table of metrics."""
    (number, oldest_us), chains, counts, states, messages, used = read_together(
        partial(overdue, connection, now_us),
        partial(lock_waits.chains, connection),
        partial(_counts, connection),
        partial(_nodes, context, connection, now_us),
        lambda: connection.execute(_outbox).all(),
        partial(_tenants, connection, context.settings.metrics_tenants, now_us),
        connection=connection,
    )
    waited = max((chain.waited_s for chain in chains), default=0.0)
    return [
        metric("lodger_actions", _by_state("lodger_actions", zip(_counted, counts, strict=True))),
        metric("lodger_overdue", [Sample("lodger_overdue", (), number)]),
        metric("lodger_overdue_seconds", [Sample("lodger_overdue_seconds", (), oldest_us / 1_000_000)]),
        metric("lodger_nodes", _by_state("lodger_nodes", states)),
        metric("lodger_outbox", _by_state("lodger_outbox", messages)),
        metric("lodger_blocked_sessions", [Sample("lodger_blocked_sessions", (), len(chains))]),
        metric("lodger_blocked_seconds", [Sample("lodger_blocked_seconds", (), waited)]),
        metric("lodger_tenant_cpu_seconds", used),
    ]


def _counts(connection: Connection) -> list[int]:
    """Return the numbers of startable, running and sealed actions."""
    return read_together(*(partial(connection.scalar, each) for each in _counted.values()), connection=connection)


def _tenants(connection: Connection, number: int, now_us: int) -> list[Sample]:
    """Return the CPU time of the day of the tenants that used most."""
    if not number:
        return []
    used = select(usage_days.c.tenant_id, usage_days.c.cpu_us).where(usage_days.c.day == now_us // DAY_US)
    most = used.order_by(usage_days.c.cpu_us.desc(), usage_days.c.tenant_id).limit(number)
    name = "lodger_tenant_cpu_seconds"
    return [Sample(name, (("tenant", row.tenant_id),), row.cpu_us / 1_000_000) for row in connection.execute(most)]


def overdue(connection: Connection, now_us: int) -> tuple[int, int]:
    """Return the number of overdue schedules and tenants, and how long the oldest has been due, in microseconds.

    It reads the ready queue, not the actions: actions that wait for their tenant's limit of concurrent runs could not
    start and are not late.
    """
    before = now_us - GRACE_US
    number, oldest = 0, now_us
    asked = (partial(connection.execute, wanted, {"before": before}) for wanted in _OVERDUE)
    for answer in read_together(*asked, connection=connection):
        count, first = answer.one()
        number += count
        oldest = min(oldest, first if first is not None else now_us)
    return number, now_us - oldest


_at = turns.c.startable_at
_OVERDUE = (
    # The index on instants, then each tenant by key; with a list of tenants the planner scanned all their schedules.
    select(func.count(), func.min(schedule_clock.c.next_at)).where(
        schedule_clock.c.next_at < bindparam("before"),
        select(tenants.c.state).where(tenants.c.id == schedule_clock.c.tenant_id).scalar_subquery() == "active",
    ),
    select(func.count(), func.min(_at)).where(turns.c.requires == "", _at < bindparam("before")),
    select(func.count(), func.min(_at)).where(turns.c.requires > "", _at < bindparam("before")),
)


def _nodes(context: StoreContext, connection: Connection, now_us: int) -> list[tuple[str, int]]:
    """Count nodes by state."""
    at = context.lease_us(connection, now_us)
    silent = (nodes.c.state == "alive") & (nodes.c.lease_until_us < at)
    asked = (nodes.c.state == "alive") & ~silent, silent
    found = read_together(
        *(partial(connection.scalar, select(func.count()).where(each)) for each in asked), connection=connection
    )
    return [*zip(("alive", "silent"), found, strict=True)]


def _by_state(name: str, rows: object) -> list[Sample]:
    """Return a sample for each (state, number) of a metric."""
    return [Sample(name, (("state", state),), number) for state, number in sorted(rows)]  # type: ignore[call-overload]  # rows of two

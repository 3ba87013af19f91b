"""Leases of nodes: registration, renewal, release, and rescue of the actions of lost nodes.

Times are the database's: this machine's on SQLite, the server's on PostgreSQL, whatever the clocks of the nodes show.
An epoch is never used twice: it increases when a node registers and when its lease is taken away, so that a late commit
under an old epoch changes nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from lodger.engine.core.access.labels import NODE, written
from lodger.engine.core.version import VERSION
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import PerDriver
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.lifecycle.endings import End, Ending, Settled, settle, unended
from lodger.engine.store.migrations.revision import head, require_usable
from lodger.engine.store.queue.ready_queue import lock_matching, refresh
from lodger.engine.store.queue.stops import READY_AGAIN, SUPERSEDED, cancel_where, go_on_after, hand_back
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.schema.scheduling import actions, is_expiring, is_running, turns
from lodger.engine.store.usage import budget_reservations
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Rescued:
    """Result of a rescue: names of the lost nodes and the new states of their actions."""

    nodes: tuple[str, ...]
    actions: tuple[Settled, ...]


def register(
    context: StoreContext,
    connection: sa.Connection,
    node_id: str,
    name: str,
    now_us: int,
    labels: Iterable[str] = (),
    slots: int = 0,
    after: int = 0,
) -> Lease:
    """Register a node (again) with a new epoch and a fresh lease; actions running under its old epoch are taken back first.

    Args:
        labels: labels that it carries beside its own name.
        after: an epoch that it had; a ledger that lost it must not give it again.

    Raises:
        Unavailable: database_newer, if the schema was upgraded beyond this release.
    """
    require_usable(connection)
    now_us = context.lease_us(connection, now_us)
    carried = frozenset(labels) | {NODE + name}
    row = connection.execute(sa.select(nodes.c.epoch).where(nodes.c.id == node_id).with_for_update()).first()
    values = {
        "name": name, "epoch": max(after, 0 if row is None else row.epoch) + 1, "state": "alive", "started_us": now_us, "seen_us": now_us,
        "lease_until_us": now_us + context.settings.lease_us, "labels": written(carried), "slots": slots, "version": VERSION,
        "schema_revision": head(),
    }  # fmt: skip
    if row is None:
        connection.execute(sa.insert(nodes).values(id=node_id, **values))
    else:
        _take_back(context, connection, [node_id], now_us)
        connection.execute(sa.update(nodes).where(nodes.c.id == node_id).values(values))
    return Lease(node_id, int(str(values["epoch"])), carried)


_own = (nodes.c.id == sa.bindparam("node"), nodes.c.epoch == sa.bindparam("lease"), nodes.c.state == "alive")
_relabel = sa.update(nodes).where(*_own).values(labels=sa.bindparam("carried"))


def renew(context: StoreContext, connection: sa.Connection, lease: Lease, now_us: int) -> int | None:
    """Extend the lease; return its time, or None if it was lost, and with it every action claimed under it.

    Args:
        now_us: this node's time; a server's own is used instead, and returned, where leases are kept by it.
    """
    own = {"node": lease.node_id, "lease": lease.epoch, "lease_now": now_us, "lease_us": context.settings.lease_us}
    renewed_us: int | None = connection.scalar(_queries(context, connection).renew, own)
    return renewed_us


def relabel(connection: sa.Connection, lease: Lease, labels: Iterable[str]) -> Lease:
    """Replace a node's labels; actions that it has claimed are unaffected."""
    carried = frozenset(labels) | {label for label in lease.labels if label.startswith(NODE)}
    connection.execute(_relabel, {"node": lease.node_id, "lease": lease.epoch, "carried": written(carried)})
    return replace(lease, labels=carried)


def unregister(connection: sa.Connection, lease: Lease, now_us: int) -> list[tuple[str, str]]:
    """Release the lease; running actions become ready again without a fault. Return them, by tenant and id."""
    own = _running_under(lease)
    # Nodes are locked before tenants, as everywhere, so that a concurrent rescue of this node finishes first.
    connection.execute(sa.select(nodes.c.epoch).where(nodes.c.id == lease.node_id).with_for_update())
    _lock_tenants(connection, *own)
    rows = connection.execute(sa.select(actions.c.tenant_id, actions.c.id).where(*own)).all()
    if rows:
        hand_back(connection, sa.and_(*own), now_us)
        refresh(connection, {row.tenant_id for row in rows})
    budget_reservations.release_unreported(connection, [lease.node_id])
    connection.execute(
        sa.update(nodes)
        .where(nodes.c.id == lease.node_id, nodes.c.epoch == lease.epoch)
        .values(state="stopped", lease_until_us=now_us)
    )
    return [(row.tenant_id, row.id) for row in rows]


def _running_under(lease: Lease) -> tuple[Any, ...]:
    """Return the conditions that an action runs under a lease."""
    return actions.c.node_id == lease.node_id, is_running, actions.c.lease_epoch == lease.epoch


def _lock_tenants(connection: sa.Connection, *which: sa.ColumnElement[bool] | sa.TextClause) -> None:
    """Lock the tenants of the actions that satisfy these conditions."""
    lock_matching(connection, sa.select(actions.c.tenant_id).where(*which).distinct())


_return = (
    sa.update(actions)
    .where(actions.c.tenant_id == sa.bindparam("tenant"), actions.c.id == sa.bindparam("action"), is_running)
    .values(READY_AGAIN)
)


def return_unstarted(connection: sa.Connection, lease: Lease, attempts: Iterable[tuple[str, int]]) -> None:
    """Make attempts (action id, number) of this lease ready again that never started because the answer to their claim was lost."""
    own = _running_under(lease)
    _lock_tenants(connection, *own)
    rows = connection.execute(sa.select(actions.c.tenant_id, actions.c.id, actions.c.attempt).where(*own)).all()
    wanted = set(attempts)
    unstarted = [tuple(row) for row in rows if (row.id, row.attempt) in wanted]
    if unstarted:
        connection.execute(_return, [{"tenant": tenant, "action": action} for tenant, action, _attempt in unstarted])
        budget_reservations.release(connection, unstarted)
        refresh(connection, {tenant for tenant, _action, _attempt in unstarted})


def rescue(context: StoreContext, connection: sa.Connection, now_us: int) -> Rescued:
    """Take back the actions of nodes with an expired lease, and attempts past their deadline; they run again."""
    now_us = context.lease_us(connection, now_us)
    lost = connection.execute(
        sa.select(nodes.c.id, nodes.c.name)
        .where(nodes.c.state == "alive", nodes.c.lease_until_us < now_us)
        .with_for_update(skip_locked=True)
    ).all()
    if lost:
        connection.execute(
            sa.update(nodes)
            .where(nodes.c.id.in_([row.id for row in lost]))
            .values(state="lost", epoch=nodes.c.epoch + 1)
        )
    lost_ids = [row.id for row in lost]
    _lock_tenants(connection, is_running, sa.or_(actions.c.node_id.in_(lost_ids), actions.c.deadline_us < now_us))
    settled = _take_back(context, connection, lost_ids, now_us)
    _cancel_superseded(connection, now_us)
    overdue = connection.execute(unended().where(is_running, actions.c.deadline_us < now_us)).all()
    message = "the attempt was silent long after its wall limit"
    settled += settle(context, connection, [_worker_lost(row, message) for row in overdue], now_us)
    return Rescued(tuple(row.name for row in lost), tuple(settled))


def _take_back(context: StoreContext, connection: sa.Connection, node_ids: list[str], now_us: int) -> list[Settled]:
    """Return the running actions of lost nodes to the queue."""
    if not node_ids:
        return []
    _lock_tenants(connection, is_running, actions.c.node_id.in_(node_ids))
    rows = connection.execute(unended().where(is_running, actions.c.node_id.in_(node_ids))).all()
    budget_reservations.release_unreported(connection, node_ids)
    message = "the node that ran this attempt stopped renewing its lease"
    return settle(context, connection, [_worker_lost(row, message) for row in rows], now_us)


def _worker_lost(row: object, message: str) -> Ending:
    """Return the end of a running action's attempt as ``worker_lost``."""
    return Ending(row, End(Outcome.WORKER_LOST, error=ScriptError("WorkerLost", message)))


def _cancel_superseded(connection: sa.Connection, now_us: int) -> None:
    """Cancel attempts past their deadline that a later slot supersedes, and let those slots start."""
    overdue = sa.and_(is_running, actions.c.deadline_us < now_us, actions.c.reason == SUPERSEDED)
    columns = (actions.c.tenant_id, actions.c.schedule_id, actions.c.node_key)
    rows = connection.execute(sa.select(*columns).where(overdue)).all()
    if rows:
        cancel_where(connection, overdue, now_us, SUPERSEDED)
        go_on_after(connection, rows)


def running_attempts(connection: sa.Connection, lease: Lease) -> set[tuple[str, int]]:
    """Return the attempts (action id, number) that run under this lease according to the ledger."""
    rows = connection.execute(sa.select(actions.c.id, actions.c.attempt).where(*_running_under(lease)))
    return {(row.id, row.attempt) for row in rows}


#: Clocks of nodes differ by two seconds at most, otherwise they claim nothing; instants this far ahead are normal.
SLACK_US = 3_000_000

_served_in_future = (turns.c.startable_at.is_not(None), turns.c.served_us > sa.bindparam("now") + SLACK_US)
_reset_served = sa.update(turns).where(*_served_in_future).values(served_us=sa.bindparam("now"))


class Overdue(NamedTuple):
    """Work that a recovery has found.

    Attributes:
        in_future: a lease or a time of service lies in the future, because a clock was set back.
        lost: a lease or an attempt has expired.
        expiring: an action has waited for too long.
        labelled: an action waits for a node with a label, which may be gone.
    """

    in_future: bool
    lost: bool
    expiring: bool
    labelled: bool


def find_overdue(context: StoreContext, connection: sa.Connection, now_us: int) -> Overdue:
    """Return the work of a recovery, by one statement, because every node asks several times a lease; reads only."""
    found = connection.execute(_queries(context, connection).overdue, {"now": now_us, "lease_now": now_us}).one()
    return Overdue(*map(bool, found))


def reset_future(context: StoreContext, connection: sa.Connection, now_us: Callable[[], int]) -> None:
    """Set leases and times of service that lie in the future to the present, after a clock was set back.

    Otherwise such a lease would last until that time comes again, and the actions of a dead node would not be rescued; a
    tenant served before the step would be served after all others. Living nodes renew their leases anyway.

    Args:
        now_us: called at the moment of writing, because a node that was suspended since it read a clock would mistake
            leases that were renewed meanwhile for future ones.
    """
    connection.execute(_queries(context, connection).reset, {"lease_now": now_us()})
    connection.execute(_reset_served, {"now": now_us()})


class _Queries(NamedTuple):
    """Statements that compare leases with a time, or set them by it."""

    overdue: Any
    reset: Any
    renew: Any


def _queries(context: StoreContext, connection: sa.Connection) -> _Queries:
    """Return the statements of leases by the clock that this ledger keeps them by."""
    return _by_database_time.of(connection) if context.database_time else _BY_NODE_TIME


def _statements(now: Any) -> _Queries:
    """Return the statements of leases that compare with this clock, an SQL expression."""
    renewed = (nodes.c.state == "alive", nodes.c.seen_us > now + SLACK_US)
    in_future = sa.exists().where(*renewed) | sa.exists().where(*_served_in_future)
    lapsed = sa.exists().where(nodes.c.state == "alive", nodes.c.lease_until_us < now)
    silent = sa.select(actions.c.id).where(is_running, actions.c.deadline_us < now).exists()
    expiring = sa.select(actions.c.id).where(is_expiring, actions.c.expires_at <= sa.bindparam("now")).exists()
    labelled = sa.exists().where(turns.c.requires > "", turns.c.startable_at.is_not(None))
    until = nodes.c.lease_until_us - nodes.c.seen_us + now
    renewal = {"lease_until_us": now + sa.bindparam("lease_us", type_=sa.BigInteger), "seen_us": now}
    return _Queries(
        sa.select(in_future, lapsed | silent, expiring, labelled),
        sa.update(nodes).where(*renewed).values(lease_until_us=until, seen_us=now),
        sa.update(nodes).where(*_own).values(renewal).returning(nodes.c.seen_us),
    )


_by_database_time = PerDriver(lambda driver: _statements(driver.now_us()))
_BY_NODE_TIME = _statements(sa.bindparam("lease_now", type_=sa.BigInteger))

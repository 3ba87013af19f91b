"""Stops unfinished actions on request: cancellation, suspension, deletion.

The rows change at once. A node notices within ``poll_s`` that an attempt is no longer its own and kills the worker; a
commit in between changes nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, TextClause, and_, bindparam, case, insert, literal, select, update

from lodger.engine.store.drivers import prepared
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.queue.schedule_concurrency import OrderKey, release
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import actions, attempts, is_expiring, is_open, is_running

_c = actions.c
#: Values of a running action that is ready again, as if it had not been claimed; its attempt number is not used again.
READY_AGAIN = {"state": "ready", "node_id": None, "lease_epoch": None, "deadline_us": None, "started_us": None}
#: Reason of an action that a later slot of its schedule has replaced or will replace.
SUPERSEDED = "superseded"


def stop_running(connection: Connection, keys: Iterable[OrderKey], now_us: int) -> None:
    """Cancel every unfinished action of these schedules (tenant, schedule, node key), running ones included, for a later slot."""
    for tenant, schedule, key in keys:
        mine = and_(_c.tenant_id == tenant, _c.schedule_id == schedule, _c.node_key == key)
        cancel_where(connection, mine, now_us, SUPERSEDED)


def stop_gracefully(connection: Connection, keys: Iterable[OrderKey], now_us: int, until_us: int) -> None:
    """Cancel the waiting actions of these schedules (tenant, schedule, node key); running ones may end until an instant, without
    retries. Backfills are exempt."""
    for tenant, schedule, key in keys:
        mine = and_(_c.tenant_id == tenant, _c.schedule_id == schedule, _c.node_key == key, _c.origin != "backfill")
        cancel_where(connection, and_(mine, _c.state.in_(("ready", "waiting_retry"))), now_us, SUPERSEDED)
        earlier = case((_c.deadline_us < until_us, _c.deadline_us), else_=until_us)
        prepared.write(
            connection, update(actions).where(mine, is_running).values(reason=SUPERSEDED, deadline_us=earlier)
        )


def stop_waiting(connection: Connection, tenant_id: str, schedule_id: str, now_us: int) -> None:
    """Cancel the waiting actions of a deleted schedule; running ones may end."""
    waiting = and_(_c.tenant_id == tenant_id, _c.schedule_id == schedule_id, _c.state.in_(("ready", "waiting_retry")))
    cancel_where(connection, waiting, now_us, "schedule_deleted")


def hand_back(connection: Connection, which: ColumnElement[bool], now_us: int) -> None:
    """Make the running actions that match ready again, in their old place in the queue; their attempts end as cancelled, without a fault.

    An action that a later slot has superseded is cancelled instead, and that slot may start. The caller refreshes the ready queue.
    """
    running = and_(which, is_running)
    close_attempts(connection, running, now_us)
    superseded = and_(running, _c.reason == SUPERSEDED)
    columns = (_c.tenant_id, _c.schedule_id, _c.node_key)
    lines = [tuple(row) for row in connection.execute(select(*columns).where(superseded))]
    if lines:
        cancel_waiting(connection, superseded, now_us, SUPERSEDED)
        release(connection, lines)
    prepared.write(connection, update(actions).where(running).values(READY_AGAIN))


_is_expired = (is_expiring, _c.expires_at <= bindparam("now"))
_expire = (
    update(actions)
    .where(*_is_expired)
    .values(state="expired", reason="expired", held=0, finished_us=bindparam("now"))
    .returning(_c.tenant_id, _c.schedule_id, _c.node_key, _c.id)
)


def expire(connection: Connection, now_us: int) -> Sequence[AnyRow]:
    """Expire the actions that have not started by ``expires_at``; return (tenant_id, schedule_id, node_key, id) of each."""
    ready_queue.lock_matching(connection, select(_c.tenant_id).where(*_is_expired).distinct(), {"now": now_us})
    expired = connection.execute(_expire, {"now": now_us}).all()
    go_on_after(connection, expired)
    return expired


def go_on_after(connection: Connection, ended: Sequence[AnyRow]) -> None:
    """Release what was held behind actions that have ended (rows with tenant_id, schedule_id, node_key), and derive the ready queue."""
    release(
        connection, {(row.tenant_id, row.schedule_id, row.node_key) for row in ended if row.schedule_id is not None}
    )
    ready_queue.refresh(connection, {row.tenant_id for row in ended})


def cancel_where(connection: Connection, which: ColumnElement[bool], now_us: int, reason: str) -> None:
    """Cancel the unfinished actions that match, except sealed ones."""
    close_attempts(connection, and_(which, is_running), now_us)
    cancel_waiting(connection, which, now_us, reason)


def cancel_waiting(connection: Connection, which: ColumnElement[bool], now_us: int, reason: str) -> None:
    """Cancel actions, none of which is running, as :func:`cancel_where`."""
    prepared.write(
        connection,
        update(actions)
        .where(which, is_open, _c.state != "sealed")
        .values(
            state="cancelled", outcome="cancelled", held=0, reason=reason, finished_us=now_us,
            node_id=None, lease_epoch=None, deadline_us=None,
        ),
    )  # fmt: skip


def close_attempts(connection: Connection, which: ColumnElement[bool] | TextClause, now_us: int) -> None:
    """Insert an attempt row with outcome ``cancelled`` for each running action that matches; the caller updates the action."""
    source: dict[str, Any] = {
        "tenant_id": _c.tenant_id,
        "action_id": _c.id,
        "step": _c.step,
        "n": _c.attempt,
        "node_id": _c.node_id,
        "lease_epoch": _c.lease_epoch,
        # It may have been claimed ahead of its start.
        "started_us": case((_c.started_us > now_us, now_us), else_=_c.started_us),
        "finished_us": literal(now_us),
        "outcome": literal("cancelled"),
        "cpu_us": literal(0),
        # Reported later by its node, see cancelled_usage.
        "wall_us": literal(0),
        "memory_peak_bytes": literal(0),
        "host_calls": literal(0),
    }
    prepared.write(connection, insert(attempts).from_select(list(source), select(*source.values()).where(which)))

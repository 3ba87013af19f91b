"""Ends what is unfinished by somebody's wish, not by an outcome: cancellation, suspension, deletion.

The rows change at once; a node sees within ``poll_s`` that an attempt is its own no more and kills the worker, whose
commit would change nothing in the meantime.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, TextClause, and_, case, insert, literal, select, update

from lodger.engine.store.queue.schedule_concurrency import Line
from lodger.engine.store.schema.scheduling import actions, attempts, is_open, is_running

_c = actions.c
#: Reason of an action whose place a later slot of its schedule took, or is to take when it has ended.
SUPERSEDED = "superseded"


def stop_running(connection: Connection, lines: Iterable[Line], now_us: int, *, reason: str) -> None:
    """Cancel every unfinished action of these lines, the running ones included."""
    for tenant, schedule, key in lines:
        mine = and_(_c.tenant_id == tenant, _c.schedule_id == schedule, _c.node_key == key)
        cancel_where(connection, mine, now_us, reason)


def stop_gracefully(connection: Connection, lines: Iterable[Line], now_us: int, until_us: int) -> None:
    """Cancel what has not begun of these lines; what runs may end up to an instant, and is not tried again. Not backfills."""
    for tenant, schedule, key in lines:
        mine = and_(_c.tenant_id == tenant, _c.schedule_id == schedule, _c.node_key == key, _c.origin != "backfill")
        cancel_where(connection, and_(mine, _c.state.in_(("ready", "waiting_retry"))), now_us, SUPERSEDED)
        earlier = case((_c.deadline_us < until_us, _c.deadline_us), else_=until_us)
        connection.execute(update(actions).where(mine, is_running).values(reason=SUPERSEDED, deadline_us=earlier))


def stop_waiting(connection: Connection, tenant_id: str, schedule_id: str, now_us: int, *, reason: str) -> None:
    """Cancel what has not begun of a schedule; what runs may end."""
    waiting = and_(_c.tenant_id == tenant_id, _c.schedule_id == schedule_id, _c.state.in_(("ready", "waiting_retry")))
    cancel_where(connection, waiting, now_us, reason)


def cancel_where(connection: Connection, which: ColumnElement[bool], now_us: int, reason: str) -> int:
    """Cancel the unfinished actions that match; sealed ones are past the point of return. Give their number."""
    close_attempts(connection, and_(which, is_running), now_us)
    done = connection.execute(
        update(actions)
        .where(which, is_open, _c.state != "sealed")
        .values(
            state="cancelled", outcome="cancelled", held=0, reason=reason, finished_us=now_us,
            node_id=None, lease_epoch=None, deadline_us=None,
        )
    )  # fmt: skip
    return done.rowcount


def close_attempts(connection: Connection, which: ColumnElement[bool] | TextClause, now_us: int) -> None:
    """Give each running attempt that matches its row, ended as cancelled; the action is the caller's to move."""
    source: dict[str, Any] = {
        "tenant_id": _c.tenant_id,
        "action_id": _c.id,
        "step": _c.step,
        "n": _c.attempt,
        "node_id": _c.node_id,
        "lease_epoch": _c.lease_epoch,
        "started_us": _c.started_us,
        "finished_us": literal(now_us),
        "outcome": literal("cancelled"),
        "cpu_us": literal(0),
        # The node that runs it knows the rest, and reports it when the worker is dead: cancelled_usage.
        "wall_us": literal(0),
        "memory_peak_bytes": literal(0),
        "host_calls": literal(0),
    }
    connection.execute(insert(attempts).from_select(list(source), select(*source.values()).where(which)))

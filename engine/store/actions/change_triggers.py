"""Run requests of schedules that run on changes.

A run on changes is a request of its schedule with origin ``change``. There is at most one unfinished run of a schedule:
while anything of it is unfinished, no run is requested and the caller tries again later. Each change requests one run
over all nodes, whether or not that run reads it.
"""

from enum import StrEnum

from sqlalchemy import Connection, func, select

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import Conflict, NotFound
from lodger.engine.store.actions import actions
from lodger.engine.store.context import StoreContext
from lodger.engine.store.queue import followers, ready_queue, schedule_concurrency
from lodger.engine.store.queue.followers import Follower, Position
from lodger.engine.store.schema import scheduling as tables

_k, _a = tables.schedule_clock.c, tables.actions.c


class TriggerResult(StrEnum):
    """Result of a request for a run of a schedule with unread changes."""

    ASKED = "asked"
    BUSY = "busy"  # the caller tries again
    RESTS = "rests"  # paused, suspended, deleted, or closed by an exclusion


def request_run(
    context: StoreContext,
    connection: Connection,
    follower: Follower,
    now_us: int,
    *,
    before: Position | None,
    until: Position,
) -> TriggerResult:
    """Request a run of a schedule, no sooner after its last one than its tenant's limits allow.

    Args:
        before: last change for which the caller knows a requested run; another node may have requested one since.
        until: last change that is to be read now.
    """
    ready_queue.lock(connection, [follower.tenant_id])
    if followers.last_requested(connection, follower) != before:
        return TriggerResult.BUSY
    clock = connection.execute(
        select(_k.state, _k.revision).where(_k.tenant_id == follower.tenant_id, _k.schedule_id == follower.schedule_id)
    ).first()
    if clock is None or clock.state != "armed":
        return TriggerResult.RESTS
    revision = context.revision_cache.revision(connection, follower.tenant_id, follower.schedule_id, clock.revision)
    if not revision.recurrence.is_open(from_us(now_us)):
        return TriggerResult.RESTS
    if schedule_concurrency.has_unfinished(connection, follower.schedule_id):
        return TriggerResult.BUSY
    limits = connection.scalar(select(tables.limits_in_effect).where(tables.tenants.c.id == follower.tenant_id))
    gap_us = context.content_cache.allowance(limits or "{}").min_interval_s * 1_000_000
    last: int | None = connection.scalar(select(func.max(_a.started_us)).where(_a.schedule_id == follower.schedule_id))
    due_us = now_us if last is None else max(now_us, last + gap_us)
    if not _request(context, connection, follower.tenant_id, follower.schedule_id, None, due_us):
        return TriggerResult.RESTS
    followers.record_requested(connection, follower, until)
    return TriggerResult.ASKED


def request_continuation(
    context: StoreContext, connection: Connection, tenant_id: str, action_id: str, schedule_id: str, now_us: int
) -> None:
    """Request a run that continues after this action, which left changes unread, if the schedule has no unfinished one."""
    if not schedule_concurrency.has_unfinished(connection, schedule_id):
        _request(context, connection, tenant_id, schedule_id, f"changes {action_id}", now_us)


def _request(
    context: StoreContext, connection: Connection, tenant_id: str, schedule_id: str, key: str | None, due_us: int
) -> bool:
    """Store a request for a run that reads changes; return False if the schedule or its tenant was suspended or deleted meanwhile."""
    try:
        if actions.find_request(connection, tenant_id, key) is None:
            actions.run_now(context, connection, tenant_id, schedule_id, None, key, due_us, origin="change")
    except (Conflict, NotFound):  # suspended or deleted meanwhile: unread changes are found when it is resumed
        return False
    return True

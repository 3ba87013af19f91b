"""Takes actions that may start: least recently served tenant first, each within its cap."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from lodger.engine.clock import from_us, to_us
from lodger.engine.ledger import turns as turn
from lodger.engine.ledger.books import Books, loaded
from lodger.engine.ledger.rulebook import Revision
from lodger.engine.ledger.schema.scheduling import (
    actions,
    is_running,
    is_startable,
    nodes,
    schedule_clock,
    tenants,
    turns,
)
from lodger.engine.node.executor import Claim

#: Slots that a script is told about ahead.
UPCOMING = 3


@dataclass(frozen=True, slots=True)
class Lease:
    """Who claims: a node and the epoch it holds."""

    node_id: str
    epoch: int


_queue = (
    select(turns.c.tenant_id, turns.c.cap, tenants.c.limits)
    .join_from(turns, tenants, tenants.c.id == turns.c.tenant_id)
    .where(turns.c.startable_at <= bindparam("now"))
    .order_by(turns.c.served_us, turns.c.tenant_id)
    .limit(bindparam("free"))
    .with_for_update(skip_locked=True, of=turns)
)
_running = select(func.count()).select_from(actions).where(actions.c.tenant_id == bindparam("tenant"), is_running)
_earliest = (
    select(actions.c.id)
    .where(actions.c.tenant_id == bindparam("tenant"), is_startable, actions.c.due_at <= bindparam("now"))
    .order_by(actions.c.due_at, actions.c.id)
    .limit(bindparam("room"))
)
_take = (
    update(actions)
    .where(actions.c.tenant_id == bindparam("tenant"), actions.c.id.in_(_earliest))
    .values(
        state="running",
        node_id=bindparam("node"),
        lease_epoch=bindparam("epoch"),
        attempt=actions.c.attempt + 1,
        started_us=bindparam("now"),
        deadline_us=bindparam("deadline"),
    )
    .returning(
        actions.c.tenant_id, actions.c.id, actions.c.schedule_id, actions.c.revision, actions.c.origin, actions.c.slot,
        actions.c.due_at, actions.c.script_id, actions.c.script_version, actions.c.params, actions.c.attempt, actions.c.step,
    )
)  # fmt: skip


_held = select(nodes.c.epoch, nodes.c.state).where(nodes.c.id == bindparam("node")).with_for_update(read=True)


def holds(connection: Connection, lease: Lease) -> bool:
    """Whether the node still has this lease. What is claimed under a lost one would be rescued by nobody."""
    row = connection.execute(_held, {"node": lease.node_id}).first()
    return row is not None and row.epoch == lease.epoch and row.state == "alive"


def claim(books: Books, connection: Connection, lease: Lease, free: int, now_us: int) -> list[Claim]:
    """Start up to ``free`` actions under this node's lease; none when it holds the lease no more.

    Tenants share what is free evenly; what one leaves, the next may take.
    """
    if free <= 0 or not holds(connection, lease):
        return []
    # The tenants' locks: what another transaction works on is passed by.
    waiting = connection.execute(_queue, {"now": now_us, "free": free}).all()
    taken: list[Any] = []
    limits: dict[str, str] = {}
    left = len(waiting)
    for tenant, cap, tenant_limits in waiting:
        room = min(-(-free // left), cap - (connection.scalar(_running, {"tenant": tenant}) or 0))
        left -= 1
        if room <= 0:
            continue
        limits[tenant] = tenant_limits
        values = {"tenant": tenant, "now": now_us, "room": room, "node": lease.node_id, "epoch": lease.epoch,
                  "deadline": now_us + _patience_us(books, tenant_limits)}  # fmt: skip
        rows = connection.execute(_take, values).all()
        free -= len(rows)
        taken += sorted(rows, key=lambda row: (row.due_at, row.id))
        if free <= 0:
            break
    turn.served(connection, limits, now_us)
    turn.refresh(connection, {tenant for tenant, _cap, _limits in waiting})
    return _described(books, connection, lease, taken, limits, now_us)


def _patience_us(books: Books, tenant_limits: str) -> int:
    return books.sources.limits(tenant_limits, None).wall_ms * 1000 + int(books.settings.grace_s * 1_000_000)


def _described(
    books: Books,
    connection: Connection,
    lease: Lease,
    rows: Sequence[Any],
    limits: dict[str, str],
    now_us: int,
) -> list[Claim]:
    revisions = books.rulebook.revisions(
        connection,
        {(row.tenant_id, row.schedule_id, row.revision) for row in rows if row.revision is not None},
    )
    told = _told(connection, (row.schedule_id for row in rows if row.schedule_id is not None))
    sources = books.sources.versions(connection, {(row.tenant_id, row.script_id, row.script_version) for row in rows})
    upcoming: dict[str, tuple[int, ...]] = {}
    claims = []
    for row in rows:
        revision = revisions.get(row.schedule_id)
        last = told.get(row.schedule_id, _NOTHING_TOLD)
        if revision is not None and row.schedule_id not in upcoming:
            upcoming[row.schedule_id] = _upcoming(revision, last[0])
        name, modules = sources[row.tenant_id, row.script_id, row.script_version]
        params = row.params if row.params is not None or revision is None else revision.params
        claims.append(
            Claim(
                action_id=row.id,
                tenant_id=row.tenant_id,
                schedule_id=row.schedule_id,
                script_name=name,
                script_version=row.script_version,
                modules=modules,
                attempt=row.attempt,
                step=row.step,
                lease_epoch=lease.epoch,
                origin=row.origin,
                slot_us=row.slot,
                due_us=row.due_at,
                started_us=now_us,
                tz=revision.tz if revision else "UTC",
                params=loaded(params),
                previous_slot_us=last[1],
                upcoming_us=upcoming.get(row.schedule_id, ()),
                last_result=loaded(last[2]),
                limits=books.sources.limits(limits[row.tenant_id], revision.limits if revision else None),
            )
        )
    return claims


def _upcoming(revision: Revision, next_us: int | None) -> tuple[int, ...]:
    slots: list[int] = []
    while next_us is not None and len(slots) < UPCOMING:
        slots.append(next_us)
        following = revision.recurrence.next_after(from_us(next_us)) if len(slots) < UPCOMING else None
        next_us = to_us(following) if following else None
    return tuple(slots)


_NOTHING_TOLD: tuple[int | None, int | None, str | None] = (None, None, None)
_done = actions.alias("done")
_last = actions.alias("last")
_told_by = (
    select(schedule_clock.c.schedule_id, schedule_clock.c.next_at, _last.c.slot, _last.c.result)
    .select_from(
        schedule_clock.outerjoin(
            _last,
            (_last.c.tenant_id == schedule_clock.c.tenant_id)
            # The index (schedule_id, state, slot) has the latest done action at its end.
            & (
                _last.c.id
                == select(_done.c.id)
                .where(
                    _done.c.schedule_id == schedule_clock.c.schedule_id,
                    _done.c.state == "done",
                    _done.c.slot.is_not(None),
                )
                .order_by(_done.c.slot.desc())
                .limit(1)
                .correlate(schedule_clock)
                .scalar_subquery()
            ),
        )
    )
    .where(schedule_clock.c.schedule_id.in_(bindparam("schedules", expanding=True)))
)


def _told(
    connection: Connection, schedule_ids: Iterable[str]
) -> dict[str | None, tuple[int | None, int | None, str | None]]:
    """Next slot, slot and result of the last run that was done, by schedule."""
    wanted = sorted(set(schedule_ids))
    if not wanted:
        return {}
    rows = connection.execute(_told_by, {"schedules": wanted})
    return {schedule: (next_us, slot, result) for schedule, next_us, slot, result in rows}

"""Takes actions that may start: least recently served tenant first, each within its cap."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, literal_column, select, union_all, update

from lodger.engine.ledger import turns as turn
from lodger.engine.ledger.books import Books, loaded
from lodger.engine.ledger.budgets import DAY_US, end_waiting
from lodger.engine.ledger.expiry import expire
from lodger.engine.ledger.schema.nodes import nodes
from lodger.engine.ledger.schema.scheduling import (
    actions,
    is_running,
    is_startable,
    tenants,
    turns,
    usage_days,
)
from lodger.engine.ledger.sources import Source, VersionKey
from lodger.engine.ledger.told import NOTHING, told, upcoming
from lodger.engine.node.executor import Claim
from lodger.engine.policy.allowance import Used, exhausted
from lodger.engine.policy.conduct import Priority
from lodger.engine.policy.placement import LONG_MS, Room, unbounded
from lodger.sandbox.limits import Limits

#: How many more waiting actions, and tenants, a node looks at when it cannot take the first.
LOOKED = 64
_LONG = Limits(wall_ms=LONG_MS + 1)


@dataclass(frozen=True, slots=True)
class Lease:
    """Who claims: a node, the epoch it holds, and the labels it carries."""

    node_id: str
    epoch: int
    labels: frozenset[str] = frozenset()


_home = turns.alias("home")
_queue = (
    select(
        turns.c.tenant_id, turns.c.requires, turns.c.cap, tenants.c.limits, tenants.c.grants, turns.c.served_us,
        func.coalesce(usage_days.c.runs, 0), func.coalesce(usage_days.c.cpu_us, 0), func.coalesce(usage_days.c.mails, 0),
    )
    .join_from(turns, tenants, tenants.c.id == turns.c.tenant_id)
    .join(_home, (_home.c.tenant_id == turns.c.tenant_id) & (_home.c.requires == ""))
    .outerjoin(usage_days, (usage_days.c.tenant_id == turns.c.tenant_id) & (usage_days.c.day == bindparam("day")))
    .where(
        turns.c.requires == bindparam("one"),
        turns.c.startable_at <= bindparam("now"),
        turns.c.bound.in_(bindparam("bound", expanding=True)),
    )
    .order_by(turns.c.served_us, turns.c.tenant_id)
    .limit(bindparam("free"))
    .with_for_update(skip_locked=True, of=_home)
)  # fmt: skip
_running = select(func.count()).select_from(actions).where(actions.c.tenant_id == bindparam("tenant"), is_running)


def _of(rank: int) -> Select[Any]:
    # One short look at the index per priority, instead of a sort over all that waits.
    due = (
        select(actions.c.id, actions.c.due_at, literal_column(str(rank)).label("rank"))
        .where(
            actions.c.tenant_id == bindparam("tenant"),
            actions.c.requires == bindparam("labels"),
            is_startable,
            actions.c.priority == literal_column(str(rank)),
            actions.c.due_at <= bindparam("now"),
        )
        .order_by(actions.c.due_at, actions.c.id)
        .limit(bindparam("room"))
        .subquery()
    )
    return select(due)


_ranked = union_all(*(_of(int(rank)) for rank in Priority)).subquery()
_earliest = select(_ranked.c.id).order_by(_ranked.c.rank, _ranked.c.due_at, _ranked.c.id).limit(bindparam("room"))
_candidates = (
    select(
        actions.c.id, actions.c.tenant_id, actions.c.schedule_id, actions.c.revision, actions.c.step, actions.c.reason
    )
    .join_from(_ranked, actions, (actions.c.tenant_id == bindparam("tenant")) & (actions.c.id == _ranked.c.id))
    .order_by(_ranked.c.rank, _ranked.c.due_at, _ranked.c.id)
    .limit(bindparam("room"))
)
_taking = (
    update(actions)
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
        actions.c.handed, actions.c.tenant_faults, actions.c.engine_faults, actions.c.conflicts,
    )
)  # fmt: skip
_take = _taking.where(actions.c.tenant_id == bindparam("tenant"), actions.c.id.in_(_earliest))
_take_these = _taking.where(
    actions.c.tenant_id == bindparam("tenant"), is_startable, actions.c.id.in_(bindparam("chosen", expanding=True))
)
_tell_why = (
    update(actions)
    .where(actions.c.tenant_id == bindparam("k_tenant"), actions.c.id == bindparam("k_id"))
    .values(reason=bindparam("why"))
)


_held = select(nodes.c.epoch, nodes.c.state).where(nodes.c.id == bindparam("node")).with_for_update(read=True)


def holds(connection: Connection, lease: Lease) -> bool:
    """Whether the node still has this lease. What is claimed under a lost one would be rescued by nobody."""
    row = connection.execute(_held, {"node": lease.node_id}).first()
    return row is not None and row.epoch == lease.epoch and row.state == "alive"


def claim(
    books: Books, connection: Connection, lease: Lease, free: int, now_us: int, room: Room | None = None
) -> list[Claim]:
    """Start up to ``free`` actions under this node's lease; none when it holds the lease no more.

    Tenants share what is free evenly; what one leaves, the next may take.

    Args:
        room: what of the node is free beside slots; what does not fit waits and says why.
    """
    if free <= 0 or not holds(connection, lease):
        return []
    expire(connection, now_us)
    room = room or unbounded(free)
    # A node that refuses some looks at more tenants, because those in front may have nothing that fits.
    looked = free + LOOKED if room.refuses(_LONG) else free
    waiting = _line(connection, lease, looked, now_us)
    taken: list[Any] = []
    looked_at: dict[str, str] = {}
    granted: dict[str, str | None] = {}
    left = len(waiting)
    for tenant, requires, cap, tenant_limits, tenant_grants, _served, runs, cpu_us, mails in waiting:
        looked_at[tenant], granted[tenant] = tenant_limits, tenant_grants
        share = -(-free // left)
        left -= 1
        allowed, used = books.sources.allowance(tenant_limits), Used(runs, cpu_us, mails)
        reason = exhausted(allowed, used)
        if reason is not None:
            end_waiting(connection, tenant, reason, now_us)
            continue
        running = connection.scalar(_running, {"tenant": tenant}) or 0
        most = min(share, cap - running)
        if allowed.runs_per_day is not None:
            # What runs now may count too: what is over the budget by it waits until it is known.
            most = min(most, allowed.runs_per_day - used.runs - running)
        if most <= 0:
            continue
        values = {"tenant": tenant, "labels": requires, "now": now_us, "room": most, "node": lease.node_id,
                  "epoch": lease.epoch, "deadline": now_us + _patience_us(books, tenant_limits)}  # fmt: skip
        # No schedule may have more than its tenant: when that fits, whatever is taken fits.
        if room.takes(most, books.sources.limits(tenant_limits, None)):
            rows = connection.execute(_take, values).all()
            for limits in _limits(books, connection, rows, tenant_limits):
                room = room.without(1, limits)
        else:
            rows, room = _fitting(books, connection, values, tenant_limits, room)
        free -= len(rows)
        taken += sorted(rows, key=lambda row: (row.due_at, row.id))
        if free <= 0:
            break
    turn.served(connection, looked_at, now_us)
    turn.refresh(connection, looked_at)
    return _described(books, connection, lease, taken, looked_at, granted, now_us)


def _line(connection: Connection, lease: Lease, most: int, now_us: int) -> Sequence[Any]:
    """Lock and give whose turn it is, least recently served first; what another transaction works on is passed by."""
    required, bound = turn.fitting(connection, lease.labels)
    values = {"now": now_us, "free": most, "day": now_us // DAY_US, "bound": bound}
    found: list[Any] = []
    for one in required:
        found += connection.execute(_queue, values | {"one": one}).all()
    return found if len(required) == 1 else sorted(found, key=lambda row: (row.served_us, row.tenant_id))[:most]


def _fitting(
    books: Books, connection: Connection, values: dict[str, Any], tenant_limits: str, room: Room
) -> tuple[Sequence[Any], Room]:
    """Take what fits of the first that wait; what does not says why. Give what was taken and the room that is left."""
    most = values["room"]
    found = connection.execute(_candidates, values | {"room": most + LOOKED}).all()
    chosen, told = [], []
    for row, limits in zip(found, _limits(books, connection, found, tenant_limits), strict=True):
        why = room.refuses(limits)
        if why is None:
            chosen.append(row.id)
            room = room.without(1, limits)
            if len(chosen) == most:
                break
        elif row.reason != why:
            told.append({"k_tenant": row.tenant_id, "k_id": row.id, "why": why})
    if told:
        connection.execute(_tell_why, told)
    if not chosen:
        return [], room
    return connection.execute(_take_these, values | {"chosen": chosen}).all(), room


def _limits(books: Books, connection: Connection, rows: Sequence[Any], tenant_limits: str) -> list[Limits]:
    """Give the limits of each of these actions of one tenant."""
    bound = {(row.tenant_id, row.schedule_id, row.revision) for row in rows if row.revision is not None}
    books.rulebook.revisions(connection, bound)
    found = []
    for row in rows:
        wishes = None
        if row.revision is not None:
            wishes = books.rulebook.revision(connection, row.tenant_id, row.schedule_id, row.revision).limits_of(
                row.step
            )
        found.append(books.sources.limits(tenant_limits, wishes))
    return found


def _patience_us(books: Books, tenant_limits: str) -> int:
    return books.sources.limits(tenant_limits, None).wall_ms * 1000 + int(books.settings.grace_s * 1_000_000)


def _be_patient(
    books: Books, connection: Connection, rows: Sequence[Any], sources: dict[VersionKey, Source], now_us: int
) -> None:
    """Let handlers have the time that they asked for, before they are taken from their node."""
    late = []
    for row in rows:
        source = sources[row.tenant_id, row.script_id, row.script_version]
        if source.kind == "host":
            patience_s = json.loads(source.modules["host.json"])["deadline_s"] + books.settings.grace_s
            late.append({"k_tenant": row.tenant_id, "k_id": row.id, "until": now_us + int(patience_s * 1_000_000)})
    if late:
        connection.execute(_put_off, late)


_put_off = (
    update(actions)
    .where(actions.c.tenant_id == bindparam("k_tenant"), actions.c.id == bindparam("k_id"))
    .values(deadline_us=bindparam("until"))
)


def _described(
    books: Books,
    connection: Connection,
    lease: Lease,
    rows: Sequence[Any],
    limits: dict[str, str],
    granted: dict[str, str | None],
    now_us: int,
) -> list[Claim]:
    bound = {(row.tenant_id, row.schedule_id, row.revision) for row in rows if row.revision is not None}
    books.rulebook.revisions(connection, bound)
    known = told(connection, (row.schedule_id for row in rows if row.schedule_id is not None))
    sources = books.sources.versions(connection, {(row.tenant_id, row.script_id, row.script_version) for row in rows})
    _be_patient(books, connection, rows, sources, now_us)
    ahead: dict[str, tuple[int, ...]] = {}
    claims = []
    for row in rows:
        key = (row.tenant_id, row.schedule_id, row.revision)
        revision = books.rulebook.revision(connection, *key) if row.revision is not None else None
        last = known.get(row.schedule_id, NOTHING)
        if revision is not None and row.schedule_id not in ahead:
            ahead[row.schedule_id] = upcoming(revision, last[0])
        source = sources[row.tenant_id, row.script_id, row.script_version]
        params = row.params if row.params is not None or revision is None else revision.params
        if row.step > 0:
            params = row.handed
        wishes = revision.limits_of(row.step) if revision else None
        claims.append(
            Claim(
                action_id=row.id,
                tenant_id=row.tenant_id,
                schedule_id=row.schedule_id,
                script_name=source.name,
                script_version=row.script_version,
                modules=source.modules,
                wasm=source.wasm,
                kind=source.kind,
                fields=source.fields,
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
                upcoming_us=ahead.get(row.schedule_id, ()),
                last_result=loaded(last[2]),
                last_start_us=last[3],
                last_node=last[4],
                grants=books.sources.grants(
                    granted[row.tenant_id], source.grants, revision.grants if revision else None
                ),
                limits=books.sources.limits(limits[row.tenant_id], wishes),
                tries=row.tenant_faults + row.engine_faults + row.conflicts + 1,
            )
        )
    return claims

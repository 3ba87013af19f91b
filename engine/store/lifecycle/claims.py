"""Claims actions that may start: least recently served tenant first, each within its limit of concurrent runs."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Connection, Select, bindparam, literal_column, null, select, update

from lodger.engine.core.execution import Claim
from lodger.engine.policy.budget_table import Used, exhausted
from lodger.engine.policy.placement import LONG_MS, Room, unbounded
from lodger.engine.store.bulk import UpdateMany
from lodger.engine.store.content_cache import VersionContent, VersionKey
from lodger.engine.store.context import StoreContext, load_json
from lodger.engine.store.drivers import Driver, driver_of
from lodger.engine.store.drivers.expressions import indexed_by
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.lifecycle.schedule_context import NO_RUNS, ScheduleRuns, ask_schedule_runs, upcoming
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.queue.candidates import Ahead, TenantQueue, candidates, running
from lodger.engine.store.queue.expiry import expire
from lodger.engine.store.records import AnyRow
from lodger.engine.store.revision_cache import Revision
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.schema.scheduling import (
    actions,
    limits_in_effect,
    tenants,
    turns,
    usage_days,
)
from lodger.engine.store.schema.script_data import storage
from lodger.engine.store.usage import usage
from lodger.engine.store.usage.day_budgets import end_waiting
from lodger.sandbox.limits import Limits

#: Number of further waiting actions, and of further tenants, that a node considers if the first do not fit.
LOOKAHEAD = 64
_LONG = Limits(wall_ms=LONG_MS + 1)


@dataclass(frozen=True, slots=True)
class Lease:
    """The claiming node, the epoch of its lease, and the labels it carries."""

    node_id: str
    epoch: int
    labels: frozenset[str] = frozenset()


_home = turns.alias("home")
_queue = (
    select(
        turns.c.tenant_id, turns.c.requires, turns.c.cap, limits_in_effect, tenants.c.grants, tenants.c.generation,
        turns.c.served_us,
        *(usage_days.c[name] for name in usage.COLUMNS), storage.c.kept_bytes, storage.c.history_bytes,
    )
    .join_from(turns, tenants, tenants.c.id == turns.c.tenant_id)
    .join(_home, (_home.c.tenant_id == turns.c.tenant_id) & (_home.c.requires == ""))
    .outerjoin(usage_days, (usage_days.c.tenant_id == turns.c.tenant_id) & (usage_days.c.day == bindparam("day")))
    .outerjoin(storage, storage.c.tenant_id == turns.c.tenant_id)
    .where(turns.c.requires == bindparam("one"))
    .order_by(turns.c.served_us, turns.c.tenant_id)
    .limit(bindparam("free"))
    .with_for_update(skip_locked=True, of=_home)
)  # fmt: skip


# What ends while this waits for a lock is seen by the next statement only: there the running actions are counted apart.
def _startable(driver: Driver) -> Select[Any]:
    """Return the query of tenants' queues with an action that may start, in the order in which they are served."""
    return _queue.add_columns((null() if driver.has_row_locks else ready_queue.running).label("running")).where(
        driver.among(turns.c.bound, "bound"),
        turns.c.startable_at.is_not(None),
        turns.c.startable_at <= bindparam("now", type_=BigInteger),
    )


# In the order of service it reads only as many rows as it returns: SQLite, with misleading statistics, would sort all that wait.
_queues = Prepared(lambda driver: indexed_by(_startable(driver), turns, "ix_lodger_turns_line"))
_queues_of = Prepared(
    lambda driver: indexed_by(
        _startable(driver).where(driver.among(turns.c.tenant_id, "only")), turns, "sqlite_autoindex_lodger_turns_1"
    )
)
#: The same for the empty sets of labels, with the queues handed on; none if actions have to expire, which comes first and waits for locks.
_queues_handing = Prepared(
    lambda driver: driver.hand_on(
        _queue.add_columns(null().label("running")).where(
            turns.c.bound == literal_column("''"),
            turns.c.startable_at.is_not(None),
            turns.c.startable_at <= bindparam("now", type_=BigInteger),
            ~ready_queue.any_expiring,
        ),
        "tenant_id",
        "queues",
    )
)
_take = UpdateMany(
    actions,
    {"k_tenant": "tenant_id", "k_id": "id"},
    ("node_id", "lease_epoch", "started_us", "deadline_us"),
    {"state": "running"},
    {"attempt": actions.c.attempt + 1},
)
_set_reason = (
    update(actions)
    .where(actions.c.tenant_id == bindparam("k_tenant"), actions.c.id == bindparam("k_id"))
    .values(reason=bindparam("why"))
)


#: The node, locked, if it still has this lease; actions claimed under a lost lease would never be rescued.
_leased = (
    select(nodes.c.id)
    .where(nodes.c.id == bindparam("node"), nodes.c.epoch == bindparam("epoch"), nodes.c.state == "alive")
    .with_for_update(read=True)
)
_held_lease = Prepared(lambda _driver: _leased)


def _look(leased: Select[Any]) -> Prepared:
    """Return the query that precedes a claim: which sets of labels are in use, and whether a lease may claim."""
    may_claim = leased.where(nodes.c.paused_us.is_(None)).scalar_subquery().label("may_claim")
    return Prepared(lambda _driver: ready_queue.sets_in_use.add_columns(may_claim))


_first_look = _look(_leased)
_first_look_unlocked = _look(_leased.with_for_update(read=True, skip_locked=True))


def holds_lease(connection: Connection, lease: Lease) -> bool:
    """Whether the node still has this lease."""
    return _held_lease.first(connection, {"node": lease.node_id, "epoch": lease.epoch}) is not None


def claim(
    context: StoreContext,
    connection: Connection,
    lease: Lease,
    free: int,
    now_us: int,
    room: Room | None = None,
    spent: dict[str, str] | None = None,
    *,
    wait: bool = True,
    ahead_us: int = 0,
    only: Collection[str] | None = None,
) -> Callable[[], list[Claim]]:
    """Claim up to ``free`` actions under this node's lease; none if the lease is lost or the node is paused.

    Tenants share the free slots evenly; unused ones are left to the next tenant.

    Args:
        room: the node's free memory and other capacity; an action that does not fit waits and records the reason.
        spent: receives the exhausted budget of each tenant that has used up its day.
        wait: wait for locks. Otherwise nothing is claimed while the node's row is locked, or actions have to expire.
        ahead_us: claim actions that come due until then, too; each begins when it is due.
        only: claim one action at most of each of these tenants, and none of others; None for all tenants.

    Returns:
        A function that returns the claims; their rows arrive at the end of the transaction.
    """
    if free <= 0:
        return list
    until_us = max(now_us, ahead_us)
    room = room or unbounded(free)
    # A node that refuses some actions considers more tenants: those in front may have none that fits.
    lookahead = free + LOOKAHEAD if room.refuses(_LONG) else free
    values = {"after": "", "now": now_us, "node": lease.node_id, "epoch": lease.epoch}
    look = (_first_look if wait else _first_look_unlocked).ask(connection, values)
    queues_ahead = ahead = None
    if driver_of(connection).has_row_locks and only is None:
        day = {"now": until_us, "expired": now_us, "free": lookahead, "day": now_us // usage.DAY_US, "one": ""}
        queues_ahead = _queues_handing.ask(connection, day)
        ahead = Ahead.ask(connection, free, until_us)
    (first,) = look()
    if first.may_claim is None:
        return list
    sets = ready_queue.label_sets(connection, lease.labels, first)
    if sets.expiring:
        if not wait:
            return list
        expire(connection, now_us)
    if queues_ahead is None or sets.expiring or len(sets.required) > 1 or len(sets.bound) > 1:
        ahead = None
        waiting = _lock_queues(connection, sets, lookahead, until_us, only)
    else:
        waiting = queues_ahead()
    tenant_rows = {row.tenant_id: row for row in waiting}
    for row in waiting:
        context.check_generation(row.tenant_id, row.generation)
    counts = (
        ahead.running()
        if ahead
        else running(connection, (each for each, row in tenant_rows.items() if row.running is None))
    )
    spent = {} if spent is None else spent
    remaining = _remaining(context, connection, tenant_rows, counts, now_us, until_us, spent)
    if only is not None:
        remaining = {tenant: min(1, number) for tenant, number in remaining.items()}
    queues = [TenantQueue(row.tenant_id, row.requires, 0) for row in waiting if remaining[row.tenant_id] > 0]
    first_rows = ahead.first() if ahead else None
    if spent:  # some of these rows have ended just now
        first_rows = None
    found = _candidates(context, connection, room, queues, tenant_rows, remaining, free, until_us, first_rows)
    context.revision_cache.revisions(connection, _revision_keys(row for rows in found.values() for row in rows))
    taken: list[Any] = []
    for number, queue in enumerate(queues):
        share = -(-(free - len(taken)) // (len(queues) - number))
        rows, maximum = found.get((queue.tenant_id, queue.requires), ()), min(share, remaining[queue.tenant_id])
        fitting, room = _choose(context, connection, rows, maximum, tenant_rows[queue.tenant_id].limits, room)
        remaining[queue.tenant_id] -= len(fitting)
        taken += fitting
    _start(context, connection, lease, taken, tenant_rows, now_us)
    ready_queue.record_served(connection, tenant_rows, now_us)
    return _claims_of(context, connection, lease, taken, tenant_rows, now_us)


def _remaining(
    context: StoreContext,
    connection: Connection,
    tenant_rows: dict[str, AnyRow],
    counts: dict[str, int],
    now_us: int,
    until_us: int,
    spent: dict[str, str],
) -> dict[str, int]:
    """Return how many actions of each tenant may start; actions of a tenant with an exhausted budget that have not begun end here."""
    running_counts = {tenant: row.running for tenant, row in tenant_rows.items() if row.running is not None} | counts
    remaining: dict[str, int] = {}
    for tenant, row in tenant_rows.items():
        allowed, used = context.content_cache.allowance(row.limits), Used(row.runs or 0, row.cpu_us or 0)
        reason = exhausted(allowed, used)
        if reason is not None:
            only_begun = end_waiting(connection, tenant, reason, now_us, until_us)
            remaining[tenant] = row.cap - running_counts.get(tenant, 0) if only_begun else 0
            spent[tenant] = reason
            continue
        remaining[tenant] = row.cap - running_counts.get(tenant, 0)
        if allowed.runs_per_day is not None:
            # Running actions may count too: actions beyond the budget wait until those have ended.
            remaining[tenant] = min(remaining[tenant], allowed.runs_per_day - used.runs - running_counts.get(tenant, 0))
    return remaining


def _candidates(
    context: StoreContext,
    connection: Connection,
    room: Room,
    queues: Sequence[TenantQueue],
    tenant_rows: dict[str, AnyRow],
    remaining: dict[str, int],
    free: int,
    now_us: int,
    ahead: Sequence[AnyRow] | None,
) -> dict[tuple[str, str], list[AnyRow]]:
    """Find startable actions: an even share for each queue; if some queues have fewer, more of the others."""
    share = -(-free // max(1, len(queues)))
    for queue in queues:
        queue.maximum = _lookahead(
            context, room, tenant_rows[queue.tenant_id].limits, min(share, remaining[queue.tenant_id])
        )
    found = candidates(connection, queues, now_us, ahead)
    if ahead is not None:
        # These were an even share of all queues, without a look at what runs already and at what does not fit.
        even = -(-free // max(1, len(tenant_rows)))
        short = [each for each in queues if each.maximum > even <= len(found.get((each.tenant_id, each.requires), ()))]
        found |= candidates(connection, short, now_us)
    counts = {queue: len(found.get((queue.tenant_id, queue.requires), ())) for queue in queues}
    spare, allowed_more = free, dict(remaining)
    for queue in queues:
        own = min(counts[queue], share, allowed_more[queue.tenant_id])
        allowed_more[queue.tenant_id] -= own
        spare -= own
    more = [queue for queue in queues if counts[queue] >= queue.maximum and allowed_more[queue.tenant_id] > 0]
    if spare > 0 and more:
        for queue in more:
            queue.maximum = _lookahead(
                context, room, tenant_rows[queue.tenant_id].limits, min(share + spare, remaining[queue.tenant_id])
            )
        found |= candidates(connection, more, now_us)
    return found


def _lookahead(context: StoreContext, room: Room, tenant_limits: str, maximum: int) -> int:
    """Return how many actions of a queue are considered: more, if the first ones may not fit."""
    # No schedule has higher limits than its tenant: if the tenant's fit, any action fits.
    return maximum if room.takes(maximum, context.content_cache.limits(tenant_limits, None)) else maximum + LOOKAHEAD


def _lock_queues(
    connection: Connection, sets: ready_queue.LabelSets, maximum: int, now_us: int, only: Collection[str] | None
) -> Sequence[Any]:
    """Lock and return the queues to serve, least recently served first; queues locked by another transaction are skipped."""
    values = {"now": now_us, "free": maximum, "day": now_us // usage.DAY_US, "bound": sets.bound}
    found: list[Any] = []
    for labels in sets.required:
        values["one"] = labels
        found += (
            _queues.rows(connection, values)
            if only is None
            else _queues_of.rows(connection, values | {"only": sorted(only)})
        )
    return found if len(sets.required) == 1 else sorted(found, key=lambda row: (row.served_us, row.tenant_id))[:maximum]


def _choose(
    context: StoreContext, connection: Connection, rows: Sequence[Any], maximum: int, tenant_limits: str, room: Room
) -> tuple[list[Any], Room]:
    """Choose the first waiting actions that fit, record why others do not; return the choice and the remaining room."""
    chosen: list[Any] = []
    waiting = []
    for row, limits in zip(rows, _limits(context, connection, rows, tenant_limits), strict=True):
        if len(chosen) == maximum:
            break
        why = room.refuses(limits)
        if why is None:
            chosen.append(row)
            room = room.without(1, limits)
        elif row.reason != why:
            waiting.append({"k_tenant": row.tenant_id, "k_id": row.id, "why": why})
    if waiting:
        connection.execute(_set_reason, waiting)
    return chosen, room


def _start(
    context: StoreContext,
    connection: Connection,
    lease: Lease,
    rows: Sequence[Any],
    tenant_rows: dict[str, AnyRow],
    now_us: int,
) -> None:
    """Mark the chosen actions as running under the lease."""
    _take.run(
        connection,
        [
            {
                "k_tenant": row.tenant_id,
                "k_id": row.id,
                "node_id": lease.node_id,
                "lease_epoch": lease.epoch,
                "started_us": max(now_us, row.due_at),
                "deadline_us": max(now_us, row.due_at) + _time_limit_us(context, tenant_rows[row.tenant_id].limits),
            }
            for row in rows
        ],
    )


def _revision_keys(rows: Iterable[Any]) -> set[tuple[str, str, int]]:
    """Return tenant, schedule and revision of the actions that have one."""
    return {(row.tenant_id, row.schedule_id, row.revision) for row in rows if row.revision is not None}


def _limits(context: StoreContext, connection: Connection, rows: Sequence[Any], tenant_limits: str) -> list[Limits]:
    """Return the limits of each of these actions of one tenant."""
    found = []
    for row in rows:
        limits_text = None
        if row.revision is not None:
            limits_text = context.revision_cache.revision(
                connection, row.tenant_id, row.schedule_id, row.revision
            ).limits_of(row.step)
        found.append(context.content_cache.limits(tenant_limits, limits_text))
    return found


def _time_limit_us(context: StoreContext, tenant_limits: str) -> int:
    """Return the time until a running action's deadline: the tenant's wall limit plus the grace period."""
    return context.content_cache.limits(tenant_limits, None).wall_ms * 1000 + int(context.settings.grace_s * 1_000_000)


def _set_handler_deadlines(
    context: StoreContext,
    connection: Connection,
    rows: Sequence[Any],
    sources: dict[VersionKey, VersionContent],
    now_us: int,
) -> None:
    """Set the deadline of actions of kind host, which declare their own ``deadline_s``."""
    extensions = []
    for row in rows:
        source = sources[row.tenant_id, row.script_id, row.script_version]
        if source.kind == "host":
            deadline_s = json.loads(source.modules["host.json"])["deadline_s"] + context.settings.grace_s
            extensions.append(
                {
                    "k_tenant": row.tenant_id,
                    "k_id": row.id,
                    "until": max(now_us, row.due_at) + int(deadline_s * 1_000_000),
                }
            )
    if extensions:
        connection.execute(_set_deadline, extensions)


_set_deadline = (
    update(actions)
    .where(actions.c.tenant_id == bindparam("k_tenant"), actions.c.id == bindparam("k_id"))
    .values(deadline_us=bindparam("until"))
)


def _claims_of(
    context: StoreContext,
    connection: Connection,
    lease: Lease,
    rows: Sequence[Any],
    tenant_rows: dict[str, AnyRow],
    now_us: int,
) -> Callable[[], list[Claim]]:
    """Set the deadlines of the started actions of kind host; return a function that returns all claims."""
    keys = _revision_keys(rows)
    context.revision_cache.revisions(connection, keys)
    revisions = {key: context.revision_cache.revision(connection, *key) for key in keys}
    sources = context.content_cache.versions(
        connection, {(row.tenant_id, row.script_id, row.script_version) for row in rows}
    )
    _set_handler_deadlines(context, connection, rows, sources, now_us)
    runs = ask_schedule_runs(connection, (row.schedule_id for row in rows if row.schedule_id is not None))
    return lambda: _build_claims(context, lease, rows, tenant_rows, now_us, revisions, sources, runs())


def _build_claims(
    context: StoreContext,
    lease: Lease,
    rows: Sequence[Any],
    tenant_rows: dict[str, AnyRow],
    now_us: int,
    revisions: dict[tuple[str, str, int], Revision],
    sources: dict[VersionKey, VersionContent],
    known: dict[str | None, ScheduleRuns],
) -> list[Claim]:
    """Return the claims of started actions, from their rows, compiled revisions, script versions and the runs of their schedules
    (``known``)."""
    ahead: dict[str, tuple[int, ...]] = {}
    days = {tenant: usage.day_usage(context, tenant_rows[tenant]) for tenant in {row.tenant_id for row in rows}}
    claims = []
    for row in rows:
        revision = revisions.get((row.tenant_id, row.schedule_id, row.revision))
        last = known.get(row.schedule_id, NO_RUNS)
        if revision is not None and row.schedule_id not in ahead:
            ahead[row.schedule_id] = upcoming(revision, last[0])
        source = sources[row.tenant_id, row.script_id, row.script_version]
        params = row.params if row.params is not None or revision is None else revision.params
        if row.step > 0:
            params = row.handed
        limits_text = revision.limits_of(row.step) if revision else None
        tenant, today = tenant_rows[row.tenant_id], days[row.tenant_id]
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
                started_us=max(now_us, row.due_at),
                tz=revision.tz if revision else "UTC",
                params=load_json(params),
                previous_slot_us=last[1],
                upcoming_us=ahead.get(row.schedule_id, ()),
                last_result=load_json(last[2]),
                last_start_us=last[3],
                last_node=last[4],
                grants=context.content_cache.grants(
                    tenant.grants, source.grants, revision.grants if revision else None
                ),
                limits=context.content_cache.limits(tenant.limits, limits_text),
                budgets=context.content_cache.budgets(tenant.limits, limits_text),
                day=today.limited,
                storage=(today.allowed.storage_bytes, (tenant.kept_bytes or 0) + (tenant.history_bytes or 0)),
                tries=row.tenant_faults + row.engine_faults + row.conflicts + 1,
            )
        )
    return claims

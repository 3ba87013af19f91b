"""Claims actions that may start: least recently served tenant first, each within its limit of concurrent runs."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Connection, Select, bindparam, null, select, update

from lodger.engine.core.execution import Claim
from lodger.engine.policy.budget_table import Used, exhausted
from lodger.engine.policy.placement import LONG_MS, Room, unbounded
from lodger.engine.store.bulk import update_many
from lodger.engine.store.content_cache import VersionContent, VersionKey
from lodger.engine.store.context import StoreContext, load_json
from lodger.engine.store.drivers import Driver, driver_of
from lodger.engine.store.drivers.expressions import indexed_by
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.lifecycle.schedule_context import NO_RUNS, ScheduleRuns, ask_schedule_runs, upcoming
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.queue.candidates import Ahead, TenantQueue, candidates, running
from lodger.engine.store.queue.stops import expire
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
    """Return the query of tenants' queues with an action that may start, in the order in which they are served.

    None, if actions have to expire: that comes first and waits for locks.
    """
    return _queue.add_columns((null() if driver.has_row_locks else ready_queue.running).label("running")).where(
        driver.among(turns.c.bound, "bound"),
        turns.c.startable_at.is_not(None),
        turns.c.startable_at <= bindparam("now", type_=BigInteger),
        ~ready_queue.any_expiring,
    )


def _queues_by(driver: Driver) -> Select[Any]:
    """Return the query of queues, which hands them on."""
    # In the order of service it reads only as many rows as it returns: SQLite, with misleading statistics, would sort all that wait.
    return driver.hand_on(indexed_by(_startable(driver), turns, "ix_lodger_turns_line"), "tenant_id", "queues")


_queues = Prepared(_queues_by)
_queues_of = Prepared(
    lambda driver: indexed_by(
        _startable(driver).where(driver.among(turns.c.tenant_id, "only")), turns, "sqlite_autoindex_lodger_turns_1"
    )
)
_take = update_many(
    actions,
    {"k_tenant": "tenant_id", "k_id": "id"},
    ("node_id", "lease_epoch", "started_us", "deadline_us"),
    {"state": "running"},
    {"attempt": actions.c.attempt + 1},
)
_one = update(actions).where(actions.c.tenant_id == bindparam("k_tenant"), actions.c.id == bindparam("k_id"))
_set_reason, _set_deadline = _one.values(reason=bindparam("why")), _one.values(deadline_us=bindparam("until"))


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
    claiming = _Claiming(context, connection, lease, free, now_us, max(now_us, ahead_us), room or unbounded(free), only)
    return claiming.run({} if spent is None else spent, wait=wait)


class _Claiming:
    """One transaction's claim; the arguments are those of :func:`claim`, ``until_us`` is the latest due instant.

    Attributes:
        tenants: the rows of the locked queues, by tenant.
        remaining: how many more actions of each tenant may start.
        revisions: those of the candidates' schedules, by action.
    """

    def __init__(
        self, context: StoreContext, connection: Connection, lease: Lease, free: int, now_us: int, until_us: int, room: Room,
        only: Collection[str] | None,
    ) -> None:  # fmt: skip
        self.context, self.connection, self.lease = context, connection, lease
        self.free, self.now_us, self.until_us, self.room, self.only = free, now_us, until_us, room, only
        # A node that refuses some actions considers more tenants: those in front may have none that fits.
        self.lookahead = free + LOOKAHEAD if room.refuses(_LONG) else free
        self.asked = {"now": until_us, "expired": now_us, "free": self.lookahead, "day": now_us // usage.DAY_US}
        self.tenants: dict[str, AnyRow] = {}
        self.remaining: dict[str, int] = {}
        self.revisions: dict[str, Revision] = {}

    def run(self, spent: dict[str, str], *, wait: bool) -> Callable[[], list[Claim]]:
        """Lock the queues, choose actions and start them; return a function that returns their claims."""
        context, connection, now_us = self.context, self.connection, self.now_us
        values = {"after": "", "expired": now_us, "node": self.lease.node_id, "epoch": self.lease.epoch}
        look = (_first_look if wait else _first_look_unlocked).ask(connection, values)
        queues_ahead = ahead = None
        if driver_of(connection).has_row_locks and self.only is None:
            queues_ahead = _queues.ask(connection, self.asked | {"bound": [""], "one": ""})
            ahead = Ahead.ask(connection, self.free, self.until_us)
        (first,) = look()
        if first.may_claim is None:
            return list
        sets = ready_queue.label_sets(connection, self.lease.labels, first)
        if sets.expiring:
            if not wait:
                return list
            expire(connection, now_us)
        if queues_ahead is None or sets.expiring or len(sets.required) > 1 or len(sets.bound) > 1:
            ahead = None
            waiting = self._lock_queues(sets)
        else:
            waiting = queues_ahead()
        self.tenants = {row.tenant_id: row for row in waiting}
        for row in waiting:
            context.check_generation(row.tenant_id, row.generation)
        uncounted = (each for each, row in self.tenants.items() if row.running is None)
        self._count_remaining(ahead.running() if ahead else running(connection, uncounted), spent)
        queues = [TenantQueue(row.tenant_id, row.requires, 0) for row in waiting if self.remaining[row.tenant_id] > 0]
        # If budgets are used up, some of the first rows have ended just now.
        found = self._candidates(queues, ahead.first() if ahead and not spent else None)
        self._read_revisions([row for rows in found.values() for row in rows if row.revision is not None])
        taken: list[Any] = []
        for number, queue in enumerate(queues):
            share = -(-(self.free - len(taken)) // (len(queues) - number))
            taken += self._choose(queue.tenant_id, found.get((queue.tenant_id, queue.requires), ()), share)
        self._start(taken)
        ready_queue.record_served(connection, self.tenants, now_us)
        return self._claims_of(taken)

    def _lock_queues(self, sets: ready_queue.LabelSets) -> Sequence[Any]:
        """Lock and return the queues to serve, least recently served first; queues locked by another transaction are skipped."""
        values = self.asked | {"bound": sets.bound}
        queues = _queues
        if self.only is not None:
            queues, values["only"] = _queues_of, sorted(self.only)
        found = [row for labels in sets.required for row in queues.rows(self.connection, values | {"one": labels})]
        if len(sets.required) == 1:
            return found
        return sorted(found, key=lambda row: (row.served_us, row.tenant_id))[: self.lookahead]

    def _count_remaining(self, counts: dict[str, int], spent: dict[str, str]) -> None:
        """Count how many actions of each tenant may start; actions of a tenant with an exhausted budget that have not begun end here."""
        for tenant, row in self.tenants.items():
            number = counts.get(tenant, 0) if row.running is None else row.running
            allowed, used = self.context.content_cache.allowance(row.limits), Used(row.runs or 0, row.cpu_us or 0)
            reason, left = exhausted(allowed, used), row.cap - number
            if reason is not None:
                spent[tenant] = reason
                if not end_waiting(self.connection, tenant, reason, self.now_us, self.until_us):
                    left = 0
            elif allowed.runs_per_day is not None:
                # Running actions may count too: actions beyond the budget wait until those have ended.
                left = min(left, allowed.runs_per_day - used.runs - number)
            self.remaining[tenant] = left if self.only is None else min(1, left)

    def _candidates(
        self, queues: Sequence[TenantQueue], ahead: Sequence[AnyRow] | None
    ) -> dict[tuple[str, str], list[AnyRow]]:
        """Find startable actions: an even share for each queue; if some queues have fewer, more of the others."""
        share = -(-self.free // max(1, len(queues)))
        self._look_further(queues, share)
        found = candidates(self.connection, queues, self.until_us, ahead)
        if ahead is not None:
            # These were an even share of all queues, without a look at what runs already and at what does not fit.
            even = -(-self.free // max(1, len(self.tenants)))
            short = [
                each for each in queues if each.maximum > even <= len(found.get((each.tenant_id, each.requires), ()))
            ]
            found |= candidates(self.connection, short, self.until_us)
        counts = {queue: len(found.get((queue.tenant_id, queue.requires), ())) for queue in queues}
        spare, allowed_more = self.free, dict(self.remaining)
        for queue in queues:
            own = min(counts[queue], share, allowed_more[queue.tenant_id])
            allowed_more[queue.tenant_id] -= own
            spare -= own
        more = [queue for queue in queues if counts[queue] >= queue.maximum and allowed_more[queue.tenant_id] > 0]
        if spare > 0 and more:
            self._look_further(more, share + spare)
            found |= candidates(self.connection, more, self.until_us)
        return found

    def _look_further(self, queues: Iterable[TenantQueue], share: int) -> None:
        """Set how many actions of each queue are considered: its share, and more if the first ones may not fit."""
        for queue in queues:
            maximum = min(share, self.remaining[queue.tenant_id])
            # No schedule has higher limits than its tenant: if the tenant's fit, any action fits.
            fits = self.room.takes(maximum, self._limits(queue.tenant_id, None))
            queue.maximum = maximum if fits else maximum + LOOKAHEAD

    def _choose(self, tenant: str, rows: Sequence[Any], share: int) -> list[Any]:
        """Return the first waiting actions of a tenant that fit; record why others do not."""
        maximum = min(share, self.remaining[tenant])
        chosen: list[Any] = []
        waiting = []
        for row in rows:
            if len(chosen) == maximum:
                break
            limits = self._limits(tenant, row)
            why = self.room.refuses(limits)
            if why is None:
                chosen.append(row)
                self.room = self.room.without(1, limits)
            elif row.reason != why:
                waiting.append({"k_tenant": tenant, "k_id": row.id, "why": why})
        if waiting:
            self.connection.execute(_set_reason, waiting)
        self.remaining[tenant] -= len(chosen)
        return chosen

    def _limits(self, tenant: str, row: AnyRow | None) -> Limits:
        """Return the limits of an action of a tenant; the tenant's own for None."""
        wishes = None
        if row is not None and row.id in self.revisions:
            wishes = self.revisions[row.id].limits_of(row.step)
        return self.context.content_cache.limits(self.tenants[tenant].limits, wishes)

    def _read_revisions(self, rows: Sequence[AnyRow]) -> None:
        """Read the revisions of these actions' schedules."""
        cache = self.context.revision_cache
        keys = {row.id: (row.tenant_id, row.schedule_id, row.revision) for row in rows}
        cache.revisions(self.connection, keys.values())
        self.revisions = {action: cache.revision(self.connection, *key) for action, key in keys.items()}

    def _start(self, rows: Sequence[Any]) -> None:
        """Mark the chosen actions as running under the lease, until their tenant's wall limit and the grace period are over."""
        grace_us = int(self.context.settings.grace_s * 1_000_000)
        values = []
        for row in rows:
            begins_us = max(self.now_us, row.due_at)
            deadline_us = begins_us + self._limits(row.tenant_id, None).wall_ms * 1000 + grace_us
            values.append({
                "k_tenant": row.tenant_id, "k_id": row.id, "node_id": self.lease.node_id, "lease_epoch": self.lease.epoch,
                "started_us": begins_us, "deadline_us": deadline_us,
            })  # fmt: skip
        _take.rows(self.connection, values)

    def _claims_of(self, rows: Sequence[Any]) -> Callable[[], list[Claim]]:
        """Set the deadlines of the started actions of kind host; return a function that returns all claims."""
        connection = self.connection
        sources = self.context.content_cache.versions(connection, map(_version_key, rows))
        self._set_handler_deadlines(rows, sources)
        runs = ask_schedule_runs(connection, (row.schedule_id for row in rows if row.schedule_id is not None))
        return lambda: self._build_claims(rows, sources, runs())

    def _set_handler_deadlines(self, rows: Sequence[Any], sources: dict[VersionKey, VersionContent]) -> None:
        """Set the deadline of actions of kind host, which declare their own ``deadline_s``."""
        extensions = []
        for row in rows:
            source = sources[_version_key(row)]
            if source.kind == "host":
                deadline_s = json.loads(source.modules["host.json"])["deadline_s"] + self.context.settings.grace_s
                until_us = max(self.now_us, row.due_at) + int(deadline_s * 1_000_000)
                extensions.append({"k_tenant": row.tenant_id, "k_id": row.id, "until": until_us})
        if extensions:
            self.connection.execute(_set_deadline, extensions)

    def _build_claims(
        self,
        rows: Sequence[Any],
        sources: dict[VersionKey, VersionContent],
        known: dict[str | None, ScheduleRuns],
    ) -> list[Claim]:
        """Return the claims of started actions, from their rows, script versions and the runs of their schedules (``known``)."""
        ahead: dict[str, tuple[int, ...]] = {}
        content_cache, tenant_rows = self.context.content_cache, self.tenants
        days = {
            tenant: usage.day_usage(self.context, tenant_rows[tenant]) for tenant in {row.tenant_id for row in rows}
        }
        claims = []
        for row in rows:
            revision = self.revisions.get(row.id)
            last = known.get(row.schedule_id, NO_RUNS)
            if revision is not None and row.schedule_id not in ahead:
                ahead[row.schedule_id] = upcoming(revision, last[0])
            source = sources[_version_key(row)]
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
                    lease_epoch=self.lease.epoch,
                    origin=row.origin,
                    slot_us=row.slot,
                    due_us=row.due_at,
                    started_us=max(self.now_us, row.due_at),
                    tz=revision.tz if revision else "UTC",
                    params=load_json(params),
                    previous_slot_us=last[1],
                    upcoming_us=ahead.get(row.schedule_id, ()),
                    last_result=load_json(last[2]),
                    last_start_us=last[3],
                    last_node=last[4],
                    grants=content_cache.grants(tenant.grants, source.grants, revision.grants if revision else None),
                    limits=content_cache.limits(tenant.limits, limits_text),
                    budgets=content_cache.budgets(tenant.limits, limits_text),
                    day=today.limited,
                    storage=(today.allowed.storage_bytes, (tenant.kept_bytes or 0) + (tenant.history_bytes or 0)),
                    tries=row.tenant_faults + row.engine_faults + row.conflicts + 1,
                )
            )
        return claims


def _version_key(row: AnyRow) -> VersionKey:
    """Return the key of the script version that an action runs."""
    return row.tenant_id, row.script_id, row.script_version

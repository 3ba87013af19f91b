"""The tick: turns due schedules into actions. One transaction writes a row per slot or per gap, and moves the clock.

Nothing is pending between transactions: an edit, a pause or a deletion first accounts the slots that the old revision owes.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, exists, or_, select, update

from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.access.labels import NODE, written
from lodger.engine.core.clock import from_us, from_us_or_none, to_us
from lodger.engine.policy.conduct import delay
from lodger.engine.policy.plan import (
    CANCEL_GRACE,
    Gap,
    Overlap,
    Run,
    Spacing,
    Step,
    UnfinishedCounts,
    held_behind_backfill,
    plan,
    stretch,
)
from lodger.engine.recurrence.search import SearchedTo
from lodger.engine.store import audit
from lodger.engine.store.bulk import insert_many, update_many
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.queue import (
    due,
    followers,
    placements,
    ready_queue,
    schedule_concurrency,
    version_pins,
)
from lodger.engine.store.queue.due import clocks
from lodger.engine.store.queue.schedule_concurrency import OrderKey, Unfinished
from lodger.engine.store.queue.stops import SUPERSEDED, stop_gracefully, stop_running
from lodger.engine.store.records import AnyRow
from lodger.engine.store.revision_cache import Revision
from lodger.engine.store.schema.scheduling import actions, schedule_clock, schedules, tenants
from lodger.engine.store.usage import day_budgets

#: Reason of a slot of a schedule placed on every node that no node ran.
NO_NODE = "no_node"
#: Maximum number of due clocks that one transaction accounts.
TICK_BATCH = 500
#: Maximum number of instants of one answer.
MAX_INSTANTS = 1000


@dataclass(frozen=True, slots=True)
class Ticked:
    """The rows that the tick of one clock wrote: ``runs`` as (action id, slot), ``skipped`` as (slot, slot_to or None, reason).

    Attributes:
        due_us: when the clock comes due; it may lie ahead.
        is_plain: nothing was written but one run, of a schedule that had none, and its clock.
    """

    tenant_id: str
    schedule_id: str
    due_us: int
    runs: tuple[tuple[str, int], ...]
    skipped: tuple[tuple[int, int | None, str], ...]
    next_us: int | None
    is_plain: bool = False


_clock = schedule_clock.c
_update_clocks = update_many(
    schedule_clock,
    {"k_tenant": "tenant_id", "k_schedule": "schedule_id"},
    ("state", "next_at", "accounted_us", "wake_at", "searching", "last_slot_us"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions of a tick, asked in one round trip: due clocks, locked, and the unfinished actions of their schedules."""

    clocks: Callable[[], list[AnyRow]]
    unfinished: Callable[[], dict[tuple[str, str], Unfinished]] | None = None


def ask(connection: Connection, now_us: int, ahead_us: int = 0, *, fewest_first: bool = False) -> Asked:
    """Ask the questions of :func:`tick`. No later change of this transaction may be about these schedules."""
    until_us = max(now_us, ahead_us)
    clocks_asked = due.ask_due_clocks(connection, until_us, TICK_BATCH, fewest_first=fewest_first)
    has_row_locks = driver_of(connection).has_row_locks
    return Asked(clocks_asked, schedule_concurrency.ask_unfinished(connection) if has_row_locks else None)


def tick(
    context: StoreContext,
    connection: Connection,
    now_us: int,
    *,
    ahead_us: int = 0,
    asked: Asked | None = None,
    without: Container[str | None] = (),
    fewest_first: bool = False,
    touched: set[str] | None = None,
) -> list[Ticked]:
    """Account every clock that is due at ``now_us``, up to :data:`TICK_BATCH`: the oldest, or those of the tenants with the fewest.

    It never waits: clocks of a tenant locked by another transaction stay due for the next tick.

    Args:
        ahead_us: account the first slot of clocks that come due until then, too, unless they have unfinished actions, which may have
            ended by then.
        asked: the answers, if they were asked for before.
        without: schedules that are left to the next tick, because they have changed since then.
        touched: as of :func:`lodger.engine.store.lifecycle.endings.settle`.
    """
    asked = asked or ask(connection, now_us, ahead_us, fewest_first=fewest_first)
    rows = [row for row in asked.clocks() if row.schedule_id not in without]
    # A clock armed here comes due after now, so that it is not in ``rows``.
    for row in due.ended_pauses(connection, now_us, TICK_BATCH) if not rows or rows[0].any_awake else ():
        context.check_generation(row.tenant_id, row.generation)
        arm(context, connection, row, now_us, gap_reason="paused")
    for row in rows:
        context.check_generation(row.tenant_id, row.generation)
    failing = [row for row in rows if row.failures]
    context.revision_cache.revisions(connection, ((row.tenant_id, row.schedule_id, row.revision) for row in failing))
    halted = {row.schedule_id for row in failing if _pause_if_failing(context, connection, row)}
    rows = [row for row in rows if row.schedule_id not in halted]
    return account(context, connection, rows, now_us, ahead=True, unfinished=asked.unfinished, touched=touched)


def pause_failing(context: StoreContext, connection: Connection, tenant_id: str, schedule_id: str) -> bool:
    """Pause a schedule with too many consecutive failures; return whether it was paused.

    A clock locked by another transaction is left to the tick, which checks before it computes the next slot.
    """
    which = clocks.where(_clock.tenant_id == tenant_id, _clock.schedule_id == schedule_id, _clock.state == "armed")
    row = connection.execute(which.with_for_update(skip_locked=True, of=schedule_clock)).first()
    return row is not None and _pause_if_failing(context, connection, row)


def _pause_if_failing(context: StoreContext, connection: Connection, row: AnyRow) -> bool:
    """Pause a schedule whose failures in a row have reached its limit; return whether it was paused."""
    conduct = context.revision_cache.revision(connection, row.tenant_id, row.schedule_id, row.revision).conduct
    if not conduct.stops(row.failures):
        return False
    _pause_with_note(context, connection, row, f"paused after {row.failures} failed actions in a row")
    return True


@dataclass(slots=True)
class _Changes:
    """Rows that one transaction writes."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    moves: list[dict[str, Any]] = field(default_factory=list)
    cancelled: list[OrderKey] = field(default_factory=list)
    replaced: list[OrderKey] = field(default_factory=list)
    superseded: list[OrderKey] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    required: set[tuple[str, str]] = field(default_factory=set)


def account(
    context: StoreContext,
    connection: Connection,
    rows: Sequence[Any],
    now_us: int,
    *,
    ahead: bool = False,
    unfinished: Callable[[], dict[tuple[str, str], Unfinished]] | None = None,
    touched: set[str] | None = None,
) -> list[Ticked]:
    """Write the actions that these armed clocks owe up to and including ``now_us``, and move the clocks to their next slot.

    Args:
        ahead: account clocks that come due later up to their slot, except for those with unfinished actions.
        unfinished: the answer of :func:`lodger.engine.store.queue.schedule_concurrency.ask_unfinished`, if it was asked for.
        touched: as of :func:`lodger.engine.store.lifecycle.endings.settle`.
    """
    if not rows:
        return []
    revisions = context.revision_cache.revisions(
        connection, ((row.tenant_id, row.schedule_id, row.revision) for row in rows)
    )
    busy = [row.schedule_id for row in rows if row.may_be_busy]
    unfinished_by_key = unfinished() if unfinished else schedule_concurrency.unfinished(connection, busy)
    if ahead:
        open_ids = {schedule for schedule, _key in unfinished_by_key}
        rows = [row for row in rows if row.next_at <= now_us or row.schedule_id not in open_ids]
    limits = {row.tenant_id: row.tenant_limits for row in rows}
    exhausted = day_budgets.exhausted_tenants(context, connection, limits, now_us)
    living = (
        placements.living_nodes(context, connection, now_us)
        if any(each.everywhere for each in revisions.values())
        else []
    )
    changes = _Changes()
    accounted: list[tuple[AnyRow, list[dict[str, Any]], int | None]] = []
    for row in rows:
        revision = revisions[row.schedule_id]
        until_us = max(now_us, row.next_at) if ahead else now_us
        now = from_us(until_us)
        if revision.fault is not None:
            _pause_with_note(context, connection, row, revision.fault)
            continue
        found = revision.recurrence.next_after(_accounted_to(row))
        if isinstance(found, SearchedTo) and found.instant <= now:
            # The search has not reached now: the next tick continues it.
            changes.moves.append(
                _clock_values(row, "armed", to_us(found.instant), to_us(found.instant) - 1, searching=True)
            )
            accounted.append((row, [], to_us(found.instant)))
            continue
        written_rows: list[dict[str, Any]] = []
        for key in placements.node_keys(revision, living):
            counted = unfinished_by_key.get((row.schedule_id, key or ""), schedule_concurrency.NONE_UNFINISHED)
            reason = exhausted.get(row.tenant_id) or (NO_NODE if key is None else None)
            steps = _decide(context, row, revision, counted, now, reason)
            if steps:
                written_rows += _rows(connection, changes, row, revision, counted, steps, key or "")
        next_us, searching = revision.next_us(now)
        last_us = max((each["slot"] for each in written_rows if each["state"] == "ready"), default=row.last_slot_us)
        state = "armed" if next_us is not None else "ended"
        changes.moves.append(_clock_values(row, state, next_us, until_us, searching=searching, last_slot_us=last_us))
        accounted.append((row, written_rows, next_us))
        if written_rows:
            changes.rows += written_rows
            changes.touched.add(row.tenant_id)
    _assign_ids(context, changes.rows)
    _write(context, connection, changes, now_us)
    ready_queue.refresh(connection, changes.touched, touched)
    return [_ticked(*each) for each in accounted]


def _accounted_to(row: AnyRow) -> datetime:
    """Return the instant up to which every slot of a clock has its row or is known not to exist."""
    return from_us(max(row.accounted_us, row.next_at - 1) if row.searching else row.accounted_us)


def _decide(
    context: StoreContext, row: AnyRow, revision: Revision, unfinished: Unfinished, now: datetime, reason: str | None
) -> list[Step]:
    """Decide for the owed slots of a schedule on one node key: run, skip or gap."""
    after = _accounted_to(row)
    if reason is not None:
        return stretch(revision.recurrence, after, now, reason)
    spacing = _spacing(context, row, revision)
    steps = plan(_unfinished_counts(revision, unfinished), revision.policies, revision.recurrence, after, now, spacing)
    backfilling = unfinished.backfilling
    if revision.policies.overlap is Overlap.QUEUE_ALL:
        backfilling += unfinished.backfill_retrying
    if backfilling and revision.policies.overlap is not Overlap.ALLOW:
        steps = [held_behind_backfill(step) for step in steps]
    return steps


def _spacing(context: StoreContext, row: AnyRow, revision: Revision) -> Spacing | None:
    """Return the tenant's minimum distance of slots; None if the schedule's rules cannot produce closer ones."""
    min_us = context.content_cache.allowance(row.tenant_limits).min_interval_s * 1_000_000
    gap_us = revision.min_gap_us
    if gap_us is None or gap_us >= min_us:
        return None
    last = from_us_or_none(row.last_slot_us)
    return Spacing(timedelta(microseconds=min_us), last)


def _rows(
    connection: Connection, changes: _Changes, row: AnyRow, revision: Revision, unfinished: Unfinished, steps: list[Step], key: str
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the actions of one schedule and node key; add their effect on its unfinished actions to the changes of a tick."""
    runs = [step for step in steps if isinstance(step, Run)]
    line = (row.tenant_id, row.schedule_id, key)
    if any(run.cancels for run in runs):
        (changes.replaced if runs[-1].held else changes.cancelled).append(line)
    elif runs and unfinished.any_retrying and revision.policies.overlap not in {Overlap.ALLOW, Overlap.QUEUE_ALL}:
        changes.superseded.append(line)
    requires = revision.requires if not key else written((*revision.requires.split(), NODE + key))
    if runs and requires:
        changes.required.add((row.tenant_id, requires))
    pinned = version_pins.pin(connection, row.tenant_id, revision.steps) if runs and revision.steps else None
    return [_row(row, step, revision, pinned, key, requires) for step in steps]


def _assign_ids(context: StoreContext, rows: list[dict[str, Any]]) -> None:
    """Set a fresh id in each row, in ascending order."""
    for each, identity in zip(rows, context.ids.new_batch(len(rows)), strict=True):
        each["id"] = identity


def _pause_with_note(context: StoreContext, connection: Connection, row: AnyRow, why: str) -> None:
    """Pause a clock by the engine itself, with the reason; slots that are due and not accounted stay owed."""
    _update_clocks.rows(connection, [_clock_values(row, "paused", None, row.accounted_us)])
    mine = (schedules.c.tenant_id == row.tenant_id, schedules.c.id == row.schedule_id)
    name = connection.scalar(update(schedules).where(*mine).values(note=why).returning(schedules.c.name))
    by, doing = (
        AuditContext("engine", "node", why),
        audit.AuditSubject("schedules.pause", row.tenant_id, row.schedule_id, name),
    )
    before, after = {"state": row.state}, {"state": "paused", "note": why}
    audit.write(connection, [audit.row(context, by, doing, before, after, context.clock.now_us())])


def _unfinished_counts(revision: Revision, unfinished: Unfinished) -> UnfinishedCounts:
    """Return the unfinished actions as the overlap policy of a revision counts them."""
    overlap, counts = revision.policies.overlap, unfinished.counts
    if overlap is Overlap.ALLOW:
        return UnfinishedCounts()
    if overlap is Overlap.QUEUE_ALL:  # each slot has all of its attempts: a retry is not superseded
        return UnfinishedCounts(counts.busy + unfinished.retrying, counts.waiting)
    return counts


def _write(context: StoreContext, connection: Connection, changes: _Changes, now_us: int) -> None:
    """Write the actions, gaps and clocks of a tick."""
    stop_running(connection, changes.cancelled, now_us)
    stop_gracefully(connection, changes.replaced, now_us, now_us + CANCEL_GRACE // timedelta(microseconds=1))
    if changes.superseded:
        superseded = [{"schedule": each[1], "key": each[2], "now": now_us} for each in changes.superseded]
        connection.execute(_supersede, superseded)
    insert_many(connection, actions, changes.rows, absent=True)
    _update_clocks.rows(connection, changes.moves)
    schedule_concurrency.release(connection, changes.superseded + changes.replaced)
    schedule_concurrency.count_failures(
        connection, ((tenant, schedule, True) for tenant, schedule, _key in changes.superseded)
    )
    ready_queue.add_queues(connection, changes.required)


_supersede = (
    update(actions)
    .where(
        actions.c.schedule_id == bindparam("schedule"),
        actions.c.node_key == bindparam("key"),
        actions.c.state == "waiting_retry",
    )
    .values(state="failed", reason=SUPERSEDED, finished_us=bindparam("now"))
)


def _row(row: AnyRow, step: Step, revision: Revision, pinned: str | None, key: str, requires: str) -> dict[str, Any]:
    """Return the row of one step, without its id."""
    slot = due_us = to_us(step.slot)
    values = {
        "tenant_id": row.tenant_id, "id": None, "schedule_id": row.schedule_id, "revision": row.revision, "origin": "slot",
        "slot": slot, "slot_to": None, "due_at": due_us, "priority": revision.conduct.rank, "expires_at": None,
        "state": "skipped", "held": 0, "reason": step.reason, "script_id": None, "script_version": None, "steps": None,
        "node_key": key, "requires": requires,
    }  # fmt: skip
    if isinstance(step, Run):
        conduct = revision.conduct
        if conduct.jitter_s:
            after = revision.recurrence.next_after(step.slot)
            following = after.instant if isinstance(after, SearchedTo) else after
            values["due_at"] = due_us = to_us(step.slot + delay(row.schedule_id, conduct.jitter, step.slot, following))
        if conduct.expiry_us is not None:
            values["expires_at"] = due_us + conduct.expiry_us
        values["state"], values["held"], values["steps"] = "ready", int(step.held), pinned
        values["script_id"] = row.script_id
        values["script_version"] = version_pins.first_version(revision.steps, row.script_version)
    elif isinstance(step, Gap):
        values["slot_to"] = to_us(step.slot_to)
    return values


def _clock_values(
    row: AnyRow,
    state: str,
    next_us: int | None,
    now_us: int,
    wake_us: int | None = None,
    *,
    searching: bool = False,
    last_slot_us: int | None = None,
) -> dict[str, Any]:
    """Return the values of a clock's row after its slots up to ``now_us`` were accounted, with its key for an update."""
    return {
        "k_tenant": row.tenant_id,
        "k_schedule": row.schedule_id,
        "state": state,
        "next_at": next_us,
        # The clock may have been set back; accounted slots stay accounted.
        "accounted_us": max(now_us, row.accounted_us),
        "wake_at": wake_us,
        "searching": int(searching),
        "last_slot_us": row.last_slot_us if last_slot_us is None else last_slot_us,
    }


def _ticked(row: AnyRow, written: list[dict[str, Any]], next_us: int | None) -> Ticked:
    """Return the result of a tick for one schedule."""
    runs = tuple([(each["id"], each["slot"]) for each in written if each["state"] == "ready"])
    skipped = tuple([(each["slot"], each["slot_to"], each["reason"]) for each in written if each["state"] == "skipped"])
    beside = row.may_be_busy or row.any_awake
    is_plain = len(runs) == 1 and not (skipped or beside)
    return Ticked(row.tenant_id, row.schedule_id, row.next_at, runs, skipped, next_us, is_plain)


def disarm(
    context: StoreContext,
    connection: Connection,
    row: AnyRow,
    now_us: int,
    state: str,
    wake_us: int | None = None,
) -> None:
    """Account a clock up to now and disarm it: paused, suspended or deleted."""
    if row.state == "armed":
        account(context, connection, [row], now_us)
    accounted_us = row.accounted_us if row.state == "paused" == state else now_us
    _update_clocks.rows(connection, [_clock_values(row, state, None, accounted_us, wake_us)])


def account_gap(context: StoreContext, connection: Connection, row: AnyRow, now_us: int, reason: str) -> None:
    """Account a disarmed clock up to now: the slots it missed become one row with one reason."""
    revision = context.revision_cache.revision(connection, row.tenant_id, row.schedule_id, row.revision)
    steps = stretch(revision.recurrence, from_us(row.accounted_us), from_us(max(now_us, row.accounted_us)), reason)
    rows = [_row(row, step, revision, None, "", revision.requires) for step in steps]
    _assign_ids(context, rows)
    insert_many(connection, actions, rows, absent=True)


def arm(context: StoreContext, connection: Connection, row: AnyRow, now_us: int, *, gap_reason: str) -> None:
    """Account a disarmed clock and arm it."""
    revision = context.revision_cache.revision(connection, row.tenant_id, row.schedule_id, row.revision)
    if revision.fault is not None:
        _pause_with_note(context, connection, row, revision.fault)
        return
    account_gap(context, connection, row, now_us, gap_reason)
    now = from_us(max(now_us, row.accounted_us))
    next_us, searching = revision.next_us(now)
    state = "armed" if next_us is not None else "ended"
    _update_clocks.rows(connection, [_clock_values(row, state, next_us, to_us(now), searching=searching)])
    followers.record_armed(connection, row.tenant_id, row.schedule_id, now_us)


def ask_any_due(connection: Connection, now_us: int) -> Callable[[], bool]:
    """Query whether a clock is due or its pause has ended, which after a tick is one whose tenant is locked; the returned function
    returns the answer."""
    return _any_due.answer(connection, {"now": now_us}, lambda rows: bool(rows[0][0]))


#: A suspended tenant's pauses do not end. Not a join: without statistics PostgreSQL would begin with all tenants.
_is_active = select(tenants.c.state).where(tenants.c.id == _clock.tenant_id).scalar_subquery() == "active"
_any_due = Prepared(
    lambda _driver: select(
        or_(
            exists().where(_clock.next_at <= bindparam("now")),
            exists().where(_clock.wake_at <= bindparam("now"), _is_active),
        )
    )
)
_next_instants = Prepared(
    lambda _driver: (
        select(_clock.next_at)
        .where(_clock.next_at <= bindparam("until"))
        .order_by(_clock.next_at)
        .limit(bindparam("most"))
    )
)


def lookahead(connection: Connection, until_us: int, *, search_further: bool) -> tuple[list[int], int]:
    """Return instants up to ``until_us`` at which a clock comes due, and the instant up to which they are complete.

    Args:
        search_further: search beyond ``until_us`` if there is none up to it.
    """
    upcoming = _next_instants.ask(connection, {"until": until_us, "most": MAX_INSTANTS})
    wake_ups = _wake_ups.ask(connection, {"until": until_us})
    earliest = _earliest.ask(connection, {}) if search_further and driver_of(connection).is_remote else None
    instants = [row[0] for row in upcoming()]
    if len(instants) == MAX_INSTANTS:
        until_us = instants[-1]
    instants += [row[0] for row in wake_ups() if row[0] <= until_us]
    if search_further and not instants:
        (found,) = earliest() if earliest is not None else _earliest.rows(connection, {})
        until_us = min((each for each in found if each is not None), default=2**62) - 1
    return instants, until_us


_earliest = Prepared(
    lambda _driver: select(
        *(
            select(each).where(each.is_not(None), *which).order_by(each).limit(1).scalar_subquery()
            for each, *which in ((_clock.next_at,), (_clock.wake_at, _is_active))
        )
    )
)
_soon = (
    select(_clock.tenant_id, _clock.schedule_id, _clock.revision)
    .where(_clock.next_at > bindparam("after"), _clock.next_at <= bindparam("until"))
    .order_by(_clock.next_at)
    .limit(bindparam("most"))
)
_wake_ups = Prepared(
    lambda _driver: select(_clock.wake_at).where(_clock.wake_at <= bindparam("until"), _is_active).limit(1000)
)


def due_soon(connection: Connection, after_us: int, until_us: int, maximum: int) -> list[tuple[str, str, int]]:
    """Return the clocks that come due after one instant and up to another, soonest first; each is (tenant, schedule, revision)."""
    rows = connection.execute(_soon, {"after": after_us, "until": until_us, "most": maximum})
    return [(row.tenant_id, row.schedule_id, row.revision) for row in rows]


def lock_clocks(connection: Connection, tenant_id: str, schedule_ids: Iterable[str] | None = None) -> Sequence[Any]:
    """Return the clocks of a tenant, or of some of its schedules, locked for this transaction."""
    statement = clocks.where(_clock.tenant_id == tenant_id)
    if schedule_ids is not None:
        statement = statement.where(_clock.schedule_id.in_(list(schedule_ids)))
    return connection.execute(statement.with_for_update(of=schedule_clock)).all()


def clock_of(connection: Connection, tenant_id: str, schedule_id: str) -> Any:
    """Return the clock of a schedule, not locked."""
    which = (_clock.tenant_id == tenant_id) & (_clock.schedule_id == schedule_id)
    return connection.execute(clocks.where(which)).one()

"""Monitoring queries: running attempts beside their usual durations, and overdue actions with the reason."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, literal, literal_column, select

from lodger.engine.core.access.labels import carries
from lodger.engine.core.clock import from_us, to_us
from lodger.engine.policy.pace import MAX_RUNS, Pace, Timing, pace
from lodger.engine.store.actions.actions import attempts as tries
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers.expressions import indexed_by
from lodger.engine.store.queue import placements
from lodger.engine.store.records import Action, AnyRow
from lodger.engine.store.rows import record
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.schema.scheduling import (
    STARTABLE,
    STOPPED,
    actions,
    attempts,
    is_one_of,
    schedule_clock,
    schedules,
    script_may_start,
    scripts,
    tenants,
    turns,
)
from lodger.engine.store.usage import day_budgets

#: (schedule, step)
Track = tuple[str, int]
#: The runs that were created before the action with an id, and ended up to an instant.
Before = tuple[str, int]
_a = actions.c
_is_held = _a.held == literal_column("1")
_is_startable = (_a.held == literal_column("0")) & is_one_of(_a.state, STARTABLE)
_is_running = _a.state == literal_column("'running'")
# A lookup for each action, whatever a planner's statistics are.
_tenant_state = select(tenants.c.state).where(tenants.c.id == _a.tenant_id).correlate(actions).scalar_subquery()
#: Whether neither the action's tenant nor its script is suspended.
_may_start = script_may_start & (_tenant_state == "active")


@dataclass(frozen=True, slots=True)
class RunningNow:
    """A running attempt.

    Attributes:
        elapsed_ms: since its start, by this process's clock.
        pace: durations of the same step in earlier runs of the schedule.
        slow: it has taken longer than :mod:`lodger.engine.policy.pace` finds usual.
    """

    action_id: str
    tenant_id: str
    schedule_id: str | None
    schedule: str | None
    script: str | None
    step: int
    attempt: int
    node: str | None
    slot: datetime | None
    due_at: datetime
    started_at: datetime
    elapsed_ms: float
    pace: Pace
    slow: bool


@dataclass(frozen=True, slots=True)
class Overdue:
    """An action or a slot that should have started.

    Attributes:
        action_id: None for a slot without an action, because no node has ticked its schedule.
        waits_ms: since it was due.
        why: ``predecessor`` (of its schedule), ``no_node`` (no living node carries its labels), ``node_paused`` (all
            nodes that do are paused), ``node_clock`` (all are paused or held by a wrong clock), ``concurrent_runs`` (of
            its tenant), ``budget`` (its tenant's day is used up, or running attempts may use the rest),
            ``tenant_suspended``, ``script_suspended``, ``paused`` (the schedule), ``lease_lost`` (it started, but its node's
            lease has ended and no node has taken it over), ``node_memory``, ``node_long``, ``unticked`` (no node ticks),
            ``slots`` (all are taken).
        detail: the labels that no node carries, the paused nodes, the exhausted budget, the suspended script, the note of
            a pause, or the node that lost its lease.
    """

    action_id: str | None
    tenant_id: str
    schedule_id: str | None
    schedule: str | None
    due_at: datetime
    waits_ms: float
    why: str
    detail: str | None = None

    def order(self) -> tuple[bool, float]:
        """Return the sort key: the longest wait first, those that were stopped on request last."""
        return self.why in {"paused", "tenant_suspended", "script_suspended"}, -self.waits_ms


_named = (
    select(
        _a.id, _a.tenant_id, _a.schedule_id, schedules.c.name.label("schedule"), scripts.c.name.label("script"), _a.step,
        _a.attempt, nodes.c.name.label("node"), _a.slot, _a.due_at, _a.started_us, _a.held, _a.reason, _a.requires, _a.node_key,
        script_may_start.label("may_start"),
    )
    .outerjoin_from(actions, schedules, (schedules.c.tenant_id == _a.tenant_id) & (schedules.c.id == _a.schedule_id))
    .outerjoin(scripts, (scripts.c.tenant_id == _a.tenant_id) & (scripts.c.id == _a.script_id))
    .outerjoin(nodes, nodes.c.id == _a.node_id)
)  # fmt: skip


def running(connection: Connection, now_us: int, tenant_id: str | None, limit: int) -> list[RunningNow]:
    """Return the running attempts, longest first."""
    statement = _named.where(_is_running).order_by(_a.started_us, _a.id).limit(limit)
    if tenant_id is not None:
        statement = statement.where(_a.tenant_id == tenant_id)
    # By the tenant SQLite would read its whole history.
    rows = connection.execute(indexed_by(statement, actions, "ix_lodger_actions_running")).all()
    known = paces(connection, ((row.schedule_id, row.step) for row in rows if row.schedule_id is not None))
    found = []
    for row in rows:
        elapsed_ms = max(0, now_us - row.started_us) / 1000
        usual = known.get((row.schedule_id, row.step), _UNKNOWN)
        found.append(
            record(RunningNow, row, action_id=row.id, elapsed_ms=elapsed_ms, pace=usual, slow=usual.slow(elapsed_ms))
        )
    return found


@dataclass(frozen=True, slots=True)
class ComparedAttempt:
    """An attempt beside earlier runs of the same schedule and step.

    Attributes:
        took_ms: duration, up to now while it runs.
        times: duration as a multiple of the median; None if there are no earlier runs.
    """

    step: int
    attempt: int
    took_ms: float
    pace: Pace
    times: float | None
    slow: bool


_UNKNOWN = pace([])


def compare_attempts(connection: Connection, action: Action, now_us: int) -> list[ComparedAttempt]:
    """Compare the attempts of an action, in order, with runs that ended before its first attempt started."""
    tried = tries(connection, action.id, action.tenant_id)
    if not tried:
        return []
    tracks = [(str(action.schedule_id), each.step) for each in tried if action.schedule_id]
    known = paces(connection, tracks, (action.id, min(to_us(each.started_at) for each in tried)))
    found = []
    for each in tried:
        usual = known.get((str(action.schedule_id), each.step), _UNKNOWN)
        took_ms = each.usage.wall_ms if each.finished_at else (now_us - to_us(each.started_at)) / 1000
        times = round(took_ms / usual.median_ms, 3) if usual.median_ms else None
        found.append(ComparedAttempt(each.step, each.n, took_ms, usual, times, usual.slow(took_ms)))
    return found


def _successful(*, before: bool) -> Select[Any]:
    """Select the latest successful runs of a step of a schedule; with ``before``, of those before an action."""
    statement = (
        select(_a.id, _a.slot, attempts.c.finished_us, attempts.c.wall_us)
        .join_from(
            actions,
            attempts,
            (attempts.c.tenant_id == _a.tenant_id)
            & (attempts.c.action_id == _a.id)
            & (attempts.c.step == bindparam("step")),
        )
        .where(_a.schedule_id == bindparam("schedule"), attempts.c.outcome == "ok")
        .limit(MAX_RUNS)
    )
    if not before:
        return statement.where(_a.state == "done").order_by(_a.slot.desc())
    ended = attempts.c.finished_us <= bindparam("before_us")
    earlier = statement.where(_a.state == "done", _a.id < bindparam("before"), ended).order_by(_a.id.desc())
    # From the action on: from the newest on, those in between would be read.
    return indexed_by(earlier, actions, "ix_lodger_actions_of_schedule")


_SUCCESSFUL = {each: _successful(before=each) for each in (False, True)}


def successes(connection: Connection, track: Track, before: Before | None = None) -> list[AnyRow]:
    """Return the latest successful runs (id, slot, finished_us, wall_us) of a step of a schedule, newest first."""
    asked: dict[str, Any] = dict(zip(("schedule", "step"), track, strict=True))
    if before is not None:
        asked |= dict(zip(("before", "before_us"), before, strict=True))
    rows = connection.execute(_SUCCESSFUL[before is not None], asked)
    return sorted(rows, key=lambda row: -row.finished_us)


def timings(connection: Connection, track: Track, before: Before | None = None) -> list[Timing]:
    """Return the durations of the latest successful runs of a step of a schedule, newest first."""
    return [Timing(row.finished_us, row.wall_us / 1000) for row in successes(connection, track, before)]


def paces(connection: Connection, tracks: Iterable[Track], before: Before | None = None) -> dict[Track, Pace]:
    """Return the pace of these steps of schedules, from their latest successful runs."""
    wanted = sorted(set(tracks))
    found = read_together(*(partial(timings, connection, track, before) for track in wanted), connection=connection)
    return {track: pace([each.wall_ms for each in some]) for track, some in zip(wanted, found, strict=True)}


def overdue(
    context: StoreContext, connection: Connection, now_us: int, tenant_id: str | None, grace_us: int, limit: int
) -> list[Overdue]:
    """Return actions and slots that are overdue by more than ``grace_us``, longest first; those that were stopped on request last."""
    before = now_us - grace_us
    # Each from the partial index made for it: SQLite would read every action, or the tenant's.
    mine = () if tenant_id is None else (_a.tenant_id == tenant_id,)
    late = [
        indexed_by(_named.where(which, _a.due_at < before, *mine), actions, f"ix_lodger_actions_{index}").limit(limit)
        for which, index in ((_is_startable, "startable"), (_is_held, "held"))
    ]

    def waiting_actions(*more: ColumnElement[bool]) -> list[AnyRow]:
        """Return the overdue actions that could start and those that are held, with these further conditions."""
        found = read_together(
            *(partial(connection.execute, each.where(*more).order_by(_a.due_at, _a.id)) for each in late),
            connection=connection,
        )
        return [row for rows in found for row in rows]

    lease_us = context.lease_us(connection, now_us)
    silent = _named.where(_is_running, nodes.c.lease_until_us < lease_us - grace_us, *mine)
    silent = silent.order_by(_a.started_us).limit(limit)
    clocks = _clocks.where(_k.next_at < before)
    if tenant_id is not None:
        clocks = clocks.where(_k.tenant_id == tenant_id)
    able, taken, owed, unable, stopped_slots = read_together(
        partial(waiting_actions, _may_start),
        partial(connection.execute, indexed_by(silent, actions, "ix_lodger_actions_running")),
        partial(connection.execute, clocks.order_by(_k.next_at).limit(limit)),
        partial(waiting_actions, ~_may_start),
        partial(_stopped_slots, context, connection, now_us, before, tenant_id, limit),
        connection=connection,
    )
    found = [*stopped_slots, *(_overdue(row, now_us, "lease_lost", row.node) for row in taken)]
    found += [_overdue(row, now_us, "unticked", None) for row in owed]
    if able or unable:  # the reasons of both are read at once
        why = _wait_reasons(context, connection, now_us, [*able, *unable])
        found += [_overdue(row, now_us, *why(row)) for row in (*able, *unable)]
    return sorted(found, key=Overdue.order)[:limit]


_k = schedule_clock.c
_clocks = select(
    literal(None).label("id"), _k.tenant_id, _k.schedule_id, schedules.c.name.label("schedule"), _k.next_at.label("due_at")
).join_from(schedule_clock, schedules)  # fmt: skip
_stopped_clocks = _clocks.add_columns(_k.state, _k.revision, _k.accounted_us, schedules.c.note).where(
    is_one_of(_k.state, STOPPED)
)


def _overdue(row: AnyRow, now_us: int, why: str, detail: str | None, due_us: int | None = None) -> Overdue:
    """Return an overdue action with the reason for its wait."""
    due = row.due_at if due_us is None else due_us
    return Overdue(
        row.id, row.tenant_id, row.schedule_id, row.schedule, from_us(due), (now_us - due) / 1000, why, detail
    )


def _stopped_slots(
    context: StoreContext, connection: Connection, now_us: int, before_us: int, tenant_id: str | None, limit: int
) -> list[Overdue]:
    """Return the first slot that each stopped schedule has missed, longest first."""
    statement = _stopped_clocks if tenant_id is None else _stopped_clocks.where(_k.tenant_id == tenant_id)
    found = []
    rows = connection.execute(statement.where(_k.accounted_us < before_us).order_by(_k.accounted_us).limit(limit)).all()
    known = context.revision_cache.revisions(
        connection, [(row.tenant_id, row.schedule_id, row.revision) for row in rows]
    )
    for row in rows:
        revision = known[row.schedule_id]
        slot = None if revision.fault is not None else revision.recurrence.next_after(from_us(row.accounted_us))
        if isinstance(slot, datetime) and to_us(slot) < before_us:
            why = "paused" if row.state == "paused" else "tenant_suspended"
            found.append(_overdue(row, now_us, why, row.note, to_us(slot)))
    return found


def _wait_reasons(
    context: StoreContext, connection: Connection, now_us: int, rows: Sequence[AnyRow]
) -> Callable[[AnyRow], tuple[str, str | None]]:
    """Return a function that returns the reason why one of these actions waits, with its detail."""
    ids = sorted({row.tenant_id for row in rows})
    of = select(tenants.c.id, tenants.c.state, tenants.c.labels).where(tenants.c.id.in_(ids))
    lines = select(turns.c.tenant_id, turns.c.requires).where(
        turns.c.tenant_id.in_(ids), turns.c.startable_at.is_not(None)
    )
    living, known, startable, budgets = read_together(
        partial(placements.living_nodes, context, connection, now_us),
        lambda: {row.id: row for row in connection.execute(of)},
        lambda: {tuple(row) for row in connection.execute(lines)},
        partial(day_budgets.spent_or_reserved, context, connection, ids, now_us),
        connection=connection,
    )

    def find_reason(row: AnyRow) -> tuple[str, str | None]:
        """Return the first reason that keeps an action from its start, in the order in which a claim meets them."""
        tenant = known.get(row.tenant_id)
        if tenant is None or tenant.state != "active":
            return "tenant_suspended", None
        if not row.may_start:
            return "script_suspended", row.script
        if row.held:
            return "predecessor", None
        needs = f"{row.requires} {tenant.labels}".strip()
        able = [node for node in living if carries(node.labels.split(), needs)]
        if not able:
            return "no_node", needs or None
        if all(node.paused_us is not None or node.held is not None for node in able):
            why = "node_paused" if all(node.paused_us is not None for node in able) else "node_clock"
            return why, " ".join(node.name for node in able)
        if row.tenant_id in budgets:
            return "budget", budgets[row.tenant_id]
        if row.reason in {"node_memory", "node_long"}:
            return str(row.reason), None
        return ("slots" if (row.tenant_id, row.requires) in startable else "concurrent_runs"), None

    return find_reason

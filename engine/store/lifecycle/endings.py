"""The end of an attempt: the one place where a running action gets its next state."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, bindparam, exists, literal_column, select, update

from lodger.engine.core.access.labels import SET, written
from lodger.engine.core.execution import SET_ELSEWHERE, Claim
from lodger.engine.policy import budget_table
from lodger.engine.policy.retry import FailureCounts, Retry, retry_wait_s, spread_wait_s
from lodger.engine.store.bulk import insert_many, update_many
from lodger.engine.store.context import StoreContext
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.lifecycle.running_lines import encode_lines
from lodger.engine.store.queue import events, ready_queue, schedule_concurrency
from lodger.engine.store.queue.stops import SUPERSEDED
from lodger.engine.store.queue.version_pins import next_step
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import (
    STARTABLE,
    actions,
    attempt_logs,
    attempt_records,
    attempts,
    limits_in_effect,
    schedules,
    tenants,
)  # fmt: skip
from lodger.engine.store.usage import budget_reservations, storage_usage, usage
from lodger.sandbox.job import LogLine, ScriptError, Usage
from lodger.sandbox.outcome import Blame, Outcome

_FINISHED = {"done", "failed", "cancelled"}
#: Beginning of the names of the events of ends.
_ENDED = f"{events.ENGINE_PREFIX}action."

_c, _behind = actions.c, actions.alias("behind")


@cache
def unended() -> Select[Any]:
    """Select actions with the columns for their end: limits of their tenants, failures in a row of their schedules, actions held
    behind them. Tenants are locked before."""
    return select(
        _c.tenant_id, _c.id, _c.schedule_id, _c.revision, _c.step, _c.attempt, _c.node_id, _c.lease_epoch, _c.started_us, _c.due_at,
        _c.reason, _c.tenant_faults, _c.engine_faults, _c.conflicts, _c.steps, _c.node_key,
        select(limits_in_effect).where(tenants.c.id == _c.tenant_id).scalar_subquery().label("tenant_limits"),
        events.have_receivers(_c.tenant_id).label("has_receivers"),
        select(schedules.c.failures).where(schedules.c.tenant_id == _c.tenant_id, schedules.c.id == _c.schedule_id)
        .scalar_subquery().label("failures"),
        # Literals, see ready_queue.
        exists().where(
            _behind.c.schedule_id == _c.schedule_id,
            _behind.c.node_key == _c.node_key,
            _behind.c.state == literal_column("'ready'"),
            _behind.c.held == literal_column("1"),
        ).label("has_held"),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ended.

    Attributes:
        result: None unless it is ok.
        effects: JSON-able description of its effects for people, in call order.
        spent: used amounts of its budgets, by name.
        has_reservation: whether it holds a reservation of its tenant's day (:mod:`lodger.engine.store.usage.budget_reservations`).
    """

    outcome: Outcome
    result: str | None = None
    error: ScriptError | None = None
    logs: tuple[LogLine, ...] = ()
    usage: Usage = Usage()  # noqa: RUF009 - frozen
    effects: tuple[dict[str, Any], ...] = ()
    spent: Mapping[str, int] = field(default_factory=dict)
    has_reservation: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a running action's attempt, to be stored.

    Attributes:
        row: the running action, a row of :func:`unended`.
        day: day that its effects are counted on, in days since 1970; None for the day on which it ends.
        record: its record for a replay, packed; None if it is not recorded.
    """

    row: Any
    end: End
    day: int | None = None
    record: bytes | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """The state of an action after an attempt and, for a retry, its start.

    Attributes:
        state: ``ready`` if the next step may start, or the same again.
        step: step of the ended attempt.
        paused: whether this end paused the schedule.
    """

    tenant_id: str
    action_id: str
    schedule_id: str | None
    attempt: int
    state: str
    outcome: Outcome
    retry_at_us: int | None = None
    step: int = 0
    paused: bool = False


@dataclass(slots=True)
class _Changes:
    """Rows that one transaction writes."""

    moved: list[dict[str, Any]] = field(default_factory=list)
    stepped: list[dict[str, Any]] = field(default_factory=list)
    tried: list[dict[str, Any]] = field(default_factory=list)
    logged: list[dict[str, Any]] = field(default_factory=list)
    recorded: list[dict[str, Any]] = field(default_factory=list)
    finished: set[schedule_concurrency.OrderKey] = field(default_factory=set)
    #: Tenant, schedule and whether it failed, of each end that may change the number of failures in a row; and where it does.
    counted: list[tuple[str, str, bool]] = field(default_factory=list)
    recounted: set[tuple[str, str]] = field(default_factory=set)
    #: Schedules that are paused after some failures.
    pausing: set[str] = field(default_factory=set)
    used: usage.Charges = field(default_factory=lambda: defaultdict(Counter))
    stored: Counter[str] = field(default_factory=Counter)
    held: list[tuple[str, str, int]] = field(default_factory=list)


def settle(
    context: StoreContext,
    connection: Connection,
    endings: Iterable[Ending],
    now_us: int,
    warned: list[usage.Warned] | None = None,
    touched: set[str] | None = None,
) -> list[Settled]:
    """Store the ends of attempts and update their actions; the caller has checked lease and state.

    Args:
        warned: receives the tenants that reached the warning level of a budget of the day.
        touched: receives the tenants whose rows of the ready queue the caller derives; None: they are derived here.
    """
    endings = list(endings)
    if not endings:
        return []
    scheduled = [ending.row for ending in endings if ending.row.schedule_id is not None]
    context.revision_cache.revisions(connection, {(row.tenant_id, row.schedule_id, row.revision) for row in scheduled})
    changes = _Changes()
    settled = [_settle_one(context, connection, changes, ending, now_us) for ending in endings]
    _update_actions.rows(connection, changes.moved)
    _start_next_step.rows(connection, changes.stepped)
    insert_many(connection, attempts, changes.tried)
    insert_many(connection, attempt_logs, changes.logged)
    insert_many(connection, attempt_records, changes.recorded)
    limits = {ending.row.tenant_id: ending.row.tenant_limits for ending in endings}
    newly_warned = usage.charge(context, connection, changes.used, limits)
    if warned is not None:
        warned += newly_warned
    budget_reservations.release(connection, changes.held)
    storage_usage.add_history(connection, changes.stored)
    schedule_concurrency.release(connection, changes.finished)
    counted = [each for each in changes.counted if each[:2] in changes.recounted]
    failed = [each for each in schedule_concurrency.count_failures(connection, counted) if each[1] in changes.pausing]
    halted = {schedule for tenant, schedule in failed if tick.pause_failing(context, connection, tenant, schedule)}
    _require_missing_tables(connection, endings)
    ready_queue.refresh(connection, {ending.row.tenant_id for ending in endings}, touched)
    heard = [
        (each, ending.end.error) for each, ending in zip(settled, endings, strict=True) if ending.row.has_receivers
    ]
    _publish_ends(connection, heard, now_us)
    return [replace(each, paused=True) if each.schedule_id in halted else each for each in settled]


def _settle_one(
    context: StoreContext, connection: Connection, changes: _Changes, ending: Ending, now_us: int
) -> Settled:
    """Add the changes of one ended attempt; return the action's state."""
    row, end, outcome = ending.row, ending.end, ending.end.outcome
    schedule: str | None = row.schedule_id
    revision = context.revision_cache.revision(connection, row.tenant_id, schedule, row.revision) if schedule else None
    faults, wait = _count_faults(ending, revision.retry if revision else _DEFAULT)
    state, due = _next_state(row, outcome, wait, now_us)
    following = next_step(row.steps, row.step) if outcome is Outcome.OK else None
    if following is not None:
        state, due = "ready", now_us
        script, version = following
        changes.stepped.append(
            {"k_tenant": row.tenant_id, "k_id": row.id, "script_id": script, "script_version": version, "handed": end.result}
        )  # fmt: skip
        end = replace(end, result=None)
        ending = replace(ending, end=end)
    changes.moved.append(_action_values(ending, state, due, faults, now_us))
    changes.tried.append(_attempt(ending, now_us))
    lines = None
    if end.logs:
        lines = encode_lines(end.logs)
        changes.logged.append(_attempt_key(row) | {"lines": lines})
    if ending.record is not None:
        changes.recorded.append(_attempt_key(row) | {"body": ending.record})
        changes.stored[row.tenant_id] += len(ending.record)
    tried = changes.tried[-1]
    changes.stored[row.tenant_id] += storage_usage.size(end.result, tried["error"], tried["effects"], lines)
    _charge(changes.used, ending, now_us)
    # A failed attempt may have ended without a report of its reservation.
    if end.has_reservation or outcome is not Outcome.OK:
        changes.held.append((row.tenant_id, row.id, row.attempt))
    if schedule is not None and due is None:
        if row.has_held:
            changes.finished.add((row.tenant_id, schedule, row.node_key))
        if state == "done" or (state == "failed" and outcome.blames is Blame.TENANT):
            changes.counted.append((row.tenant_id, schedule, state == "failed"))
            if state == "failed" or row.failures:
                changes.recounted.add((row.tenant_id, schedule))
            if revision is not None and revision.conduct.pause_after:
                changes.pausing.add(schedule)
    retry_at = due if following is None else None
    return Settled(row.tenant_id, row.id, schedule, row.attempt, state, outcome, retry_at_us=retry_at, step=row.step)


_DEFAULT = Retry()


def _needed_label(ending: Ending) -> str | None:
    """Return the label of the nodes that have the table which the attempt's node lacked; None for other ends."""
    error = ending.end.error
    if ending.end.outcome is not Outcome.ENGINE_FAULT or error is None or error.name != SET_ELSEWHERE:
        return None
    return SET + error.message.partition(" ")[0]


def _require_missing_tables(connection: Connection, endings: Iterable[Ending]) -> None:
    """Let actions that met a table which their node lacks wait for nodes that have it."""
    for ending in endings:
        label = _needed_label(ending)
        if label is not None:
            mine = (actions.c.tenant_id == ending.row.tenant_id, actions.c.id == ending.row.id)
            before = connection.scalar(select(actions.c.requires).where(*mine)) or ""
            requires = written({*before.split(), label})
            connection.execute(update(actions).where(*mine).values(requires=requires))
            ready_queue.add_queues(connection, [(ending.row.tenant_id, requires)])


def _count_faults(ending: Ending, retry: Retry) -> tuple[FailureCounts, float | None]:
    """Return the action's numbers of failures, and the seconds until it is tried again."""
    row, outcome = ending.row, ending.end.outcome
    if _needed_label(ending) is not None and row.reason != SUPERSEDED:
        return FailureCounts(tenant=row.tenant_faults, engine=row.engine_faults, conflicts=row.conflicts), 0.0
    conflict = outcome is Outcome.CONFLICT
    faults = FailureCounts(
        tenant=row.tenant_faults + (outcome.blames is Blame.TENANT),
        engine=row.engine_faults + (outcome.blames is Blame.ENGINE),
        conflicts=row.conflicts + conflict,
    )
    # A later slot waits for the end of this action: no retry.
    wait_s = None if row.reason == SUPERSEDED else retry_wait_s(retry, outcome, faults)
    return faults, wait_s and spread_wait_s(wait_s, f"{row.id}:{row.attempt}")


def _next_state(row: AnyRow, outcome: Outcome, wait_s: float | None, now_us: int) -> tuple[str, int | None]:
    """Return the state of an action after an attempt, and when it is due again.

    An attempt that did not fail by the script is made again from its old place in the queue, like one that still runs; a failure
    of the script's own waits for its retry, which a later slot may supersede.
    """
    if outcome is Outcome.OK:
        return "done", None
    is_own = outcome.blames is Blame.TENANT
    if outcome is Outcome.CANCELLED or (row.reason == SUPERSEDED and not is_own):
        return "cancelled", None
    if wait_s is None:
        return "failed", None
    if is_own:
        return "waiting_retry", now_us + int(wait_s * 1_000_000)
    return "ready", now_us + int(wait_s * 1_000_000) if wait_s else row.due_at


def _action_values(ending: Ending, state: str, due: int | None, faults: FailureCounts, now_us: int) -> dict[str, Any]:
    """Return the values of an action's row after an attempt, with its key for an update."""
    row, end = ending.row, ending.end
    return {
        "k_tenant": row.tenant_id,
        "k_id": row.id,
        "state": state,
        "due_at": row.due_at if due is None else due,
        "reason": None if state == "done" and row.reason == SUPERSEDED else row.reason,
        "tenant_faults": faults.tenant,
        "engine_faults": faults.engine,
        "conflicts": faults.conflicts,
        "finished_us": None if due is not None else now_us,
        "outcome": Outcome.CANCELLED.value if state == "cancelled" else end.outcome.value,
        "result": end.result,
        "error": _error_text(end.error),
    }


_update_actions = update_many(
    actions,
    {"k_tenant": "tenant_id", "k_id": "id"},
    ("state", "due_at", "reason", "tenant_faults", "engine_faults", "conflicts", "finished_us", "outcome", "result", "error"),
    {"node_id": None, "lease_epoch": None, "deadline_us": None},
)  # fmt: skip


#: Each step has its own retries; attempt numbers continue, because they are part of the fence.
_start_next_step = update_many(
    actions,
    {"k_tenant": "tenant_id", "k_id": "id"},
    ("script_id", "script_version", "handed"),
    {"tenant_faults": 0, "engine_faults": 0, "conflicts": 0},
    {"step": actions.c.step + 1},
)


def _error_text(error: ScriptError | None) -> str | None:
    """Return an error as JSON text; None for None."""
    return None if error is None else json.dumps(asdict(error), ensure_ascii=False)


def _attempt_key(row: AnyRow) -> dict[str, Any]:
    """Return the key of the row of an action's present attempt."""
    return {"tenant_id": row.tenant_id, "action_id": row.id, "step": row.step, "n": row.attempt}


def _attempt(ending: Ending, now_us: int) -> dict[str, Any]:
    """Return the row of an ended attempt."""
    row, end, used = ending.row, ending.end, ending.end.usage
    return _attempt_key(row) | {
        "node_id": row.node_id,
        "lease_epoch": row.lease_epoch,
        "started_us": row.started_us,
        "finished_us": now_us,
        "outcome": end.outcome.value,
        "error": _error_text(end.error),
        "effects": json.dumps(end.effects, ensure_ascii=False) if end.effects else None,
        "cpu_us": int(used.cpu_ms * 1000),
        "wall_us": int(used.wall_ms * 1000),
        "memory_peak_bytes": used.memory_peak_bytes,
        "host_calls": used.host_calls,
    }


def _charge(used: usage.Charges, ending: Ending, now_us: int) -> None:
    """Charge an attempt to its tenant: calls and reads to the day of its start, effects to the day of its end; faults of the engine
    and conflicts are free."""
    row, end, outcome = ending.row, ending.end, ending.end.outcome
    if outcome.blames is Blame.ENGINE or outcome is Outcome.CONFLICT:
        return
    ok = outcome is Outcome.OK
    spent = end.spent or (budget_table.of_effects(end.effects) if ok else {})
    start_day, today = row.started_us // usage.DAY_US, now_us // usage.DAY_US
    counts = used[row.tenant_id, today]
    counts["runs"] += 1
    counts["cpu_us"] += int(end.usage.cpu_ms * 1000)
    for name, amount in usage.chargeable(spent, applied=ok).items():
        end_day = today if ending.day is None else ending.day
        used[row.tenant_id, end_day if budget_table.BY_NAME[name].effect else start_day][name] += amount


def _publish_ends(connection: Connection, ends: Sequence[tuple[Settled, ScriptError | None]], now_us: int) -> None:
    """Enqueue the end of these actions for the receivers that subscribe to it."""
    finished = [(settled, error) for settled, error in ends if settled.state in _FINISHED]
    if not finished:
        return
    tenant_ids = sorted({settled.tenant_id for settled, _ in finished})
    wanted = set(events.subscribers(connection, tenant_ids, [f"{_ENDED}{state}" for state in sorted(_FINISHED)]))
    for settled, error in finished:
        event = f"{_ENDED}{settled.state}"
        if (settled.tenant_id, event) in wanted:
            # Negative numbers are those of attempts: no effect of a script has one.
            place = (settled.action_id, settled.step, -settled.attempt)
            events.enqueue(connection, settled.tenant_id, event, _event_data(settled, error), place, now_us)


def _event_data(settled: Settled, error: ScriptError | None) -> dict[str, Any]:
    """Return the data of the event that an action has ended."""
    error_shown = None
    if error is not None:
        error_shown = {"name": error.name, "message": error.message, "file": error.file, "line": error.line}
    return {
        "tenant": settled.tenant_id,
        "action": settled.action_id,
        "schedule": settled.schedule_id,
        "state": settled.state,
        "outcome": settled.outcome.value,
        "step": settled.step,
        "attempt": settled.attempt,
        "error": error_shown,
    }


#: Written by another transaction that took the attempt from its node, under the node's name and epoch.
_BY_OTHERS = frozenset({Outcome.WORKER_LOST, Outcome.CANCELLED})

_t, _a = attempts.c, actions.c
_committed_end = (
    select(_t.outcome, _a.state, _a.step, _a.attempt, _a.due_at)
    .join(actions, (_a.tenant_id == _t.tenant_id) & (_a.id == _t.action_id))
    .where(_t.tenant_id == bindparam("tenant"), _t.action_id == bindparam("id"), _t.step == bindparam("of_step"),
           _t.n == bindparam("number"), _t.node_id == bindparam("node"), _t.lease_epoch == bindparam("epoch"))
)  # fmt: skip


def find_committed(connection: Connection, node_id: str, unconfirmed: Iterable[tuple[Claim, Outcome]]) -> list[Settled]:
    """Return those of these attempts with an end written by this node's commit, in their present state."""
    settled = []
    for claim, outcome in unconfirmed:
        keys = {"tenant": claim.tenant_id, "id": claim.action_id, "of_step": claim.step, "number": claim.attempt,
                 "node": node_id, "epoch": claim.lease_epoch}  # fmt: skip
        row = connection.execute(_committed_end, keys).first()
        if row is not None and (row.outcome == outcome.value or Outcome(row.outcome) not in _BY_OTHERS):
            settled.append(_present_state(claim, row))
    return settled


def _present_state(claim: Claim, row: AnyRow) -> Settled:
    """Return the state of an action whose end was committed before."""
    state = row.state
    if row.attempt != claim.attempt:  # a later attempt has started already
        is_own = Outcome(row.outcome).blames is Blame.TENANT
        state = "ready" if row.step > claim.step or not is_own else "waiting_retry"
    retry_at = row.due_at if state == row.state and state in STARTABLE and row.step == claim.step else None
    return Settled(
        claim.tenant_id, claim.action_id, claim.schedule_id, claim.attempt, state, Outcome(row.outcome),
        retry_at_us=retry_at, step=claim.step,
    )  # fmt: skip

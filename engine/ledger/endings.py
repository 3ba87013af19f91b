"""How an attempt's end changes its action: the one place where a running action gets its next state."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from lodger.engine.ledger import serial, turns
from lodger.engine.ledger.books import Books
from lodger.engine.ledger.insertion import dialect_insert
from lodger.engine.ledger.many import UpdateMany, insert_many
from lodger.engine.ledger.records import AnyRow
from lodger.engine.ledger.schema.scheduling import actions, attempt_logs, attempts, usage_days
from lodger.engine.policy.retry import Retry, Tries, again
from lodger.sandbox.job import LogLine, ScriptError, Usage
from lodger.sandbox.outcome import Blame, Outcome

DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Ending:
    """One attempt that is over.

    Attributes:
        row: the running action: tenant_id, id, schedule_id, revision, step, attempt, node_id, lease_epoch, started_us,
            tenant_faults, engine_faults, conflicts.
        reason: a word for the action row when the outcome alone does not tell (suspended, superseded).
    """

    row: Any
    outcome: Outcome
    result: str | None = None
    error: ScriptError | None = None
    logs: tuple[LogLine, ...] = ()
    usage: Usage = Usage()  # noqa: RUF009 - frozen
    effects: tuple[dict[str, Any], ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of an action: its new state and, when it is tried again, from when."""

    tenant_id: str
    action_id: str
    schedule_id: str | None
    attempt: int
    state: str
    outcome: Outcome
    retry_at_us: int | None = None


def settle(books: Books, connection: Connection, endings: Iterable[Ending], now_us: int) -> list[Settled]:
    """Store the ends of attempts and move their actions on; the caller has checked that it may (lease, state)."""
    endings = list(endings)
    retries = _retries(books, connection, endings)
    moved, tried, logged, answers = [], [], [], []
    over: set[tuple[str, str]] = set()
    used: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for ending in endings:
        row = ending.row
        faults, wait = _weighed(ending, retries.get(row.schedule_id, _DEFAULT))
        state, due = _next_state(ending.outcome, wait, now_us)
        moved.append(_move(ending, state, due, faults, now_us))
        tried.append(_attempt(ending, now_us))
        if ending.logs:
            logged.append(_key(row) | {"lines": json.dumps([[line.level, line.text, line.us] for line in ending.logs])})
        if ending.outcome.blames is not Blame.ENGINE:
            day = used[row.tenant_id, now_us // DAY_US]
            day[0] += 1
            day[1] += int(ending.usage.cpu_ms * 1000)
        if row.schedule_id is not None and due is None:
            over.add((row.tenant_id, row.schedule_id))
        answers.append(
            Settled(row.tenant_id, row.id, row.schedule_id, row.attempt, state, ending.outcome, retry_at_us=due)
        )
    if not endings:
        return []
    _move_on.run(connection, moved)
    insert_many(connection, attempts, tried)
    insert_many(connection, attempt_logs, logged)
    _charge(connection, used)
    serial.release(connection, over)
    turns.refresh(connection, {ending.row.tenant_id for ending in endings})
    return answers


_DEFAULT = Retry()


def _retries(books: Books, connection: Connection, endings: list[Ending]) -> dict[str | None, Retry]:
    """Retry policies by schedule, read only when something failed."""
    failed = {
        (end.row.tenant_id, end.row.schedule_id, end.row.revision)
        for end in endings
        if end.row.schedule_id is not None and end.outcome not in {Outcome.OK, Outcome.CANCELLED}
    }
    if not failed:
        return {}
    return {schedule: found.retry for schedule, found in books.rulebook.revisions(connection, failed).items()}


def _weighed(ending: Ending, retry: Retry) -> tuple[Tries, float | None]:
    row, outcome = ending.row, ending.outcome
    conflict = outcome is Outcome.CONFLICT
    faults = Tries(
        tenant=row.tenant_faults + (outcome.blames is Blame.TENANT),
        engine=row.engine_faults + (outcome.blames is Blame.ENGINE),
        conflicts=row.conflicts + conflict,
    )
    return faults, again(retry, outcome, faults)


def _next_state(outcome: Outcome, wait_s: float | None, now_us: int) -> tuple[str, int | None]:
    if outcome is Outcome.OK:
        return "done", None
    if outcome is Outcome.CANCELLED:
        return "cancelled", None
    if wait_s is None:
        return "failed", None
    return "waiting_retry", now_us + int(wait_s * 1_000_000)


def _move(ending: Ending, state: str, due: int | None, faults: Tries, now_us: int) -> dict[str, Any]:
    row, error = ending.row, ending.error
    return {
        "k_tenant": row.tenant_id,
        "k_id": row.id,
        "state": state,
        "due_at": row.due_at if due is None else due,
        "reason": ending.reason or row.reason,
        "tenant_faults": faults.tenant,
        "engine_faults": faults.engine,
        "conflicts": faults.conflicts,
        "finished_us": None if due is not None else now_us,
        "outcome": ending.outcome.value,
        "result": ending.result,
        "error": _error_text(error),
    }


_move_on = UpdateMany(
    actions,
    {"k_tenant": "tenant_id", "k_id": "id"},
    ("state", "due_at", "reason", "tenant_faults", "engine_faults", "conflicts", "finished_us", "outcome", "result", "error"),
    {"node_id": None, "lease_epoch": None, "deadline_us": None},
)  # fmt: skip


def _error_text(error: ScriptError | None) -> str | None:
    if error is None:
        return None
    return json.dumps(
        {
            "name": error.name,
            "message": error.message,
            "stack": error.stack,
            "file": error.file,
            "line": error.line,
            "column": error.column,
        },
        ensure_ascii=False,
    )


def _key(row: AnyRow) -> dict[str, Any]:
    return {"tenant_id": row.tenant_id, "action_id": row.id, "step": row.step, "n": row.attempt}


def _attempt(ending: Ending, now_us: int) -> dict[str, Any]:
    row, usage = ending.row, ending.usage
    return _key(row) | {
        "node_id": row.node_id,
        "lease_epoch": row.lease_epoch,
        "started_us": row.started_us,
        "finished_us": now_us,
        "outcome": ending.outcome.value,
        "error": _error_text(ending.error),
        "effects": json.dumps(ending.effects, ensure_ascii=False) if ending.effects else None,
        "cpu_us": int(usage.cpu_ms * 1000),
        "wall_us": int(usage.wall_ms * 1000),
        "memory_peak_bytes": usage.memory_peak_bytes,
        "host_calls": usage.host_calls,
    }


def _charge(connection: Connection, used: dict[tuple[str, int], list[int]]) -> None:
    if not used:
        return
    statement = dialect_insert(connection, usage_days)
    statement = statement.on_conflict_do_update(
        index_elements=["tenant_id", "day"],
        set_={
            "runs": usage_days.c.runs + statement.excluded.runs,
            "cpu_us": usage_days.c.cpu_us + statement.excluded.cpu_us,
        },
    )
    rows = [
        {"tenant_id": tenant, "day": day, "runs": runs, "cpu_us": cpu}
        for (tenant, day), (runs, cpu) in sorted(used.items())
    ]
    connection.execute(statement, rows)

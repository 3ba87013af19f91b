"""Commits with effects in a platform's own database: seal in the ledger, apply there, settle in the ledger.

*Seal*, in the commit's own transaction, fenced by the lease: the effects in the ledger's database are tried and rolled
back, so that they cannot fail later, and their rows are held; the other effects are stored. From then on the attempt is
never run again, only finished, by any node. *Apply* is :mod:`lodger.engine.effects.foreign_commit`. *Settle*: the
effects in the ledger are written, and the action gets its next state.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from lodger.engine.core.execution import Claim
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.effects import commit, holds, write_set_codec
from lodger.engine.effects.budget_checks import effects_of
from lodger.engine.effects.commit_errors import NotApplied
from lodger.engine.effects.effect import has_unread_changes
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.foreign_commit import Receipt
from lodger.engine.effects.write_set import WriteSet
from lodger.engine.store.actions import change_triggers
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.lifecycle.endings import Ending, Settled, settle, unended
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import actions
from lodger.engine.store.schema.script_data import sealed
from lodger.engine.store.usage import budget_reservations, usage
from lodger.sandbox.job import LogLine, ScriptError, Usage
from lodger.sandbox.outcome import Outcome

#: Pauses between tries: doubled from the first to the last.
PAUSE_US, MAX_PAUSE_US = 250_000, 60_000_000
_s, _a = sealed.c, actions.c


@dataclass(frozen=True, slots=True)
class SealedAttempt:
    """An attempt to be finished; ``write_set`` is the encoded write set of the platform's database."""

    tenant_id: str
    action_id: str
    step: int
    attempt: int
    write_set: str
    tries: int = 0


def seal(
    context: StoreContext,
    connection: Connection,
    row: AnyRow,
    claim: Claim,
    finished: Finished,
    write_set: WriteSet,
    now_us: int,
) -> SealedAttempt:
    """Store a successful attempt and set its action to ``sealed``; the caller has a lease's time to finish it.

    Raises:
        NotApplied: its effects in the ledger's database are refused; nothing is sealed.
        WriteBlocked: another sealed attempt holds one of its rows.
    """
    own, away = write_set.part(foreign=False), write_set.part(foreign=True)
    if own:
        trial = connection.begin_nested()
        try:
            commit.apply(connection, own, now_us=now_us)
        finally:
            trial.rollback()
    holds.take(connection, own)
    made = SealedAttempt(claim.tenant_id, claim.action_id, row.step, row.attempt, write_set_codec.encode(away))
    connection.execute(
        insert(sealed).values(
            tenant_id=made.tenant_id,
            action_id=made.action_id,
            step=made.step,
            attempt=made.attempt,
            docket=made.write_set,
            own=write_set_codec.encode(own),
            ended=_encode_end(claim, finished, now_us // usage.DAY_US),
            sealed_us=now_us,
            next_us=now_us + context.settings.lease_us,
        )
    )
    mine = (_a.tenant_id == made.tenant_id, _a.id == made.action_id)
    connection.execute(update(actions).where(*mine).values(state="sealed", deadline_us=None))
    # Its use counts from now on, so that other attempts cannot exceed the budgets before it is settled.
    due = effects_of(finished)
    if due:
        budget_reservations.add(connection, made.tenant_id, made.action_id, made.attempt, now_us // usage.DAY_US, due)
    return made


def _encode_end(claim: Claim, finished: Finished, day: int) -> str:
    """Return the end of a sealed attempt as JSON text."""
    body = {
        "script": claim.script_name,
        "slot_us": claim.slot_us,
        "next_us": claim.upcoming_us[0] if claim.upcoming_us else None,
        "result": finished.result,
        "logs": [[line.level, line.text, line.us] for line in finished.logs],
        "usage": asdict(finished.usage),
        "effects": finished.effects,
        "spent": dict(finished.spent),
        "day": day,
    }
    return json.dumps(body, ensure_ascii=False)


_columns = (_s.tenant_id, _s.action_id, _s.step, _s.attempt, _s.docket, _s.tries, _s.next_us)
_due = select(*_columns).where(_s.next_us <= bindparam("now")).order_by(_s.next_us).limit(bindparam("most"))
_take = (
    update(sealed)
    .where(_s.tenant_id == bindparam("k_tenant"), _s.action_id == bindparam("k_action"), _s.next_us == bindparam("was"))
    .values(next_us=bindparam("until"), tries=_s.tries + 1)
)


def ask_next_due(connection: Connection) -> Callable[[], int | None]:
    """Ask for the earliest instant at which a sealed attempt may be taken up, None if there is none."""
    return _next_due.answer(connection, {}, lambda rows: int(rows[0][0]) if rows else None)


_next_due = Prepared(lambda _driver: select(_s.next_us).order_by(_s.next_us).limit(1))


def take_due(context: StoreContext, connection: Connection, now_us: int, max_rows: int) -> list[SealedAttempt]:
    """Take up due sealed attempts for a lease's time; those that another node takes concurrently are skipped."""
    taken, until = [], now_us + context.settings.lease_us
    for row in connection.execute(_due, {"now": now_us, "most": max_rows}).all():
        keys = {"k_tenant": row.tenant_id, "k_action": row.action_id, "was": row.next_us, "until": until}
        if connection.execute(_take, keys).rowcount == 1:
            taken.append(SealedAttempt(row.tenant_id, row.action_id, row.step, row.attempt, row.docket, row.tries + 1))
    return taken


def postpone(connection: Connection, one: SealedAttempt, why: str, now_us: int) -> int:
    """Postpone an attempt that cannot be finished now; return the time of the next try. It stays sealed without limit."""
    next_us = now_us + min(MAX_PAUSE_US, PAUSE_US << min(one.tries, 20))
    mine = (_s.tenant_id == one.tenant_id, _s.action_id == one.action_id, _s.attempt == one.attempt)
    connection.execute(update(sealed).where(*mine).values(next_us=next_us, last_error=why[:2000]))
    return next_us


@dataclass(frozen=True, slots=True)
class Finish:
    """A settled attempt, for hooks and events."""

    settled: Settled
    finished: Finished
    script: str
    slot_us: int | None
    next_us: int | None
    warned: tuple[usage.Warned, ...] = ()


def settle_sealed(
    context: StoreContext, connection: Connection, datasets: Datasets, one: SealedAttempt, receipt: Receipt, now_us: int
) -> Finish | None:
    """Write the effects in the ledger and settle the action; return None if another node has done so."""
    ready_queue.lock(connection, [one.tenant_id])
    mine = (_a.tenant_id == one.tenant_id, _a.id == one.action_id)
    fence = (_a.state == "sealed", _a.step == one.step, _a.attempt == one.attempt)
    row = connection.execute(unended().where(*mine, *fence).with_for_update()).first()
    kept = connection.execute(
        select(_s.own, _s.ended).where(
            _s.tenant_id == one.tenant_id, _s.action_id == one.action_id, _s.attempt == one.attempt
        )
    ).first()
    if row is None or kept is None:
        return None
    body = json.loads(kept.ended)
    finished, own = _finished(body, receipt), write_set_codec.decode(kept.own, datasets)
    if finished.outcome is Outcome.OK:
        finished = _apply_own(connection, own, finished, now_us)
    holds.release(connection, one.tenant_id, one.action_id)
    connection.execute(delete(sealed).where(_s.tenant_id == one.tenant_id, _s.action_id == one.action_id))
    warned: list[usage.Warned] = []
    (made,) = settle(context, connection, [Ending(row, finished, body.get("day"))], now_us, warned)
    if (
        made.state == "done"
        and made.schedule_id is not None
        and has_unread_changes(effect for _index, effect in own.effects)
    ):
        change_triggers.request_continuation(
            context, connection, made.tenant_id, made.action_id, made.schedule_id, now_us
        )
    return Finish(made, finished, body["script"], body["slot_us"], body["next_us"], tuple(warned))


def _finished(body: dict[str, Any], receipt: Receipt) -> Finished:
    """Return the end of a sealed attempt from its stored JSON and the receipt of its commit."""
    return Finished(
        outcome=receipt.outcome,
        result=body["result"] if receipt.outcome is Outcome.OK else None,
        error=receipt.error,
        logs=tuple(LogLine(*line) for line in body["logs"]),
        usage=Usage(**body["usage"]),
        effects=tuple(body["effects"]) if receipt.outcome is Outcome.OK else (),
        spent=body.get("spent", {}),
        has_reservation=True,
    )


def _apply_own(connection: Connection, write_set: WriteSet, finished: Finished, now_us: int) -> Finished:
    """Apply the effects in the ledger that belong to a commit in another database."""
    try:
        commit.apply(connection, write_set, now_us=now_us, verify=False)
    except NotApplied as refused:
        # Checked when it was sealed and held since: a write outside of Lodger changed the rows. The receipt of this
        # step stays, so that a further attempt applies nothing twice there.
        error = ScriptError("EngineFault", f"applied in part: {refused.message}", file=refused.file, line=refused.line)
        return Finished(Outcome.ENGINE_FAULT, error=error, logs=finished.logs, usage=finished.usage)
    return finished

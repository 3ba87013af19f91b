"""Commits the ends of attempts, many in one transaction: fence, effects, outcome, result, logs, usage, next state."""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, any_, bindparam, literal_column, select
from sqlalchemy.exc import DBAPIError

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Claim
from lodger.engine.effects import commit as journal_commit
from lodger.engine.effects import database_errors, sealed_commits
from lodger.engine.effects.budget_checks import BudgetChecks
from lodger.engine.effects.commit_errors import NotApplied, WriteBlocked
from lodger.engine.effects.database_errors import CONSTRAINT_AT_COMMIT, TransactionLost, is_refusal
from lodger.engine.effects.effect import has_unread_changes
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.sealed_commits import SealedAttempt
from lodger.engine.store.actions import change_triggers
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.drivers.prepared import Answer, Prepared
from lodger.engine.store.lifecycle import fetches
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.lifecycle.endings import Ending, Settled, settle, unended
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import STARTABLE, actions, is_running
from lodger.engine.store.usage.usage import Warned
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

_log = logging.getLogger("lodger.ledger")


@dataclass(frozen=True, slots=True)
class Committed:
    """Result of a commit: settled actions, and claims that no longer belonged to this node (their work is dropped).

    Attributes:
        sealed: attempts that must be finished in a platform's database.
        waiting: claims that could not be committed yet, because rows are locked; they still run.
        passed_by: claims whose tenant another transaction has locked; they still run.
        warned: tenants that reached the warning level of a budget of the day.
        is_plain: nothing was written but the ends of runs without effects, and no receiver of events hears of them.
        may_start: whether an action of these tenants may start now that could not before.
    """

    settled: tuple[Settled, ...]
    lost: tuple[Claim, ...]
    sealed: tuple[SealedAttempt, ...] = ()
    waiting: tuple[Claim, ...] = ()
    passed_by: tuple[Claim, ...] = ()
    warned: tuple[Warned, ...] = ()
    is_plain: bool = False
    may_start: bool = False


_waiting = actions.alias("waiting")
_has_waiting = (
    select(_waiting.c.id)
    .where(
        _waiting.c.tenant_id == actions.c.tenant_id,
        _waiting.c.held == literal_column("0"),
        _waiting.c.state.in_([literal_column(f"'{each}'") for each in STARTABLE]),
    )
    .exists()
    .label("has_waiting")
)


#: Of the tenants that are locked alone: a transaction that locks others' actions may wait for one that has locked those tenants.
def _running(of_tenants: ColumnElement[bool]) -> Select[Any]:
    """Select the running actions of a lease, locked, of some tenants."""
    mine = actions.c.node_id == bindparam("node"), actions.c.lease_epoch == bindparam("lease"), is_running
    return unended().add_columns(_has_waiting).where(*mine, of_tenants).with_for_update()


_mine = Prepared(lambda driver: _running(driver.among(actions.c.tenant_id, "tenants")))
_mine_of_free = Prepared(
    lambda driver: _running(actions.c.tenant_id == any_(driver.handed("free", actions.c.tenant_id.type)))
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions of a commit, asked in one round trip: the running actions, locked with their tenants, and day budgets.

    Attributes:
        free: the locked tenants, if those that another transaction has locked are passed by; ``awaited`` are not.
    """

    mine: Answer
    checks: BudgetChecks
    free: Answer | None = None
    awaited: Collection[str] = ()

    def passed_by(self, tenant_ids: Iterable[str]) -> set[str]:
        """Return the tenants that are left to the next commit."""
        return set() if self.free is None else {*tenant_ids} - {row.tenant_id for row in self.free()} - {*self.awaited}


def ask(
    context: StoreContext,
    connection: Connection,
    lease: Lease,
    batch: Sequence[tuple[Claim, Finished]],
    now_us: int,
    awaited: Collection[str] | None = None,
) -> Asked:
    """Ask the database what :func:`commit` needs to know, before it writes.

    Args:
        awaited: tenants whose lock is waited for; the others are passed by while another transaction has it. None for all.
    """
    tenant_ids = sorted({claim.tenant_id for claim, _finished in batch})
    mine = {"node": lease.node_id, "lease": lease.epoch}
    if awaited is None:
        ready_queue.lock(connection, tenant_ids)
        found = _mine.ask(connection, mine | {"tenants": tenant_ids})
        return Asked(found, BudgetChecks(context, connection, batch, now_us))
    # The only locks that are waited for, and the first: so that no two commits wait for each other.
    ready_queue.lock(connection, {*awaited} & {*tenant_ids})
    free = ready_queue.ask_free(connection, tenant_ids)
    found = _mine_of_free.ask(connection, mine)
    return Asked(found, BudgetChecks(context, connection, batch, now_us), free, awaited)


def commit(
    context: StoreContext,
    connection: Connection,
    lease: Lease,
    batch: Sequence[tuple[Claim, Finished]],
    now_us: int,
    waited_long: Collection[str] = (),
    asked: Asked | None = None,
    touched: set[str] | None = None,
) -> Committed:
    """Store the ends of these attempts with their effects; those with a lost lease are dropped.

    Args:
        waited_long: ids of actions that have waited long enough for locked rows: they end in conflict.
        asked: the answers of :func:`ask`, if it was called before.
        touched: as of :func:`lodger.engine.store.lifecycle.endings.settle`.

    Raises:
        TransactionLost: one of them made the database roll back; nothing is stored.

    The fence: the action still runs, under this node and epoch, with this attempt number. Rescue, cancellation and
    suspension change one of the three in their own transaction.
    """
    asked = asked or ask(context, connection, lease, batch, now_us)
    held, checks = {row.id: row for row in asked.mine()}, asked.checks
    endings: list[Ending] = []
    lost_claims: list[Claim] = []
    sealed_attempts: list[SealedAttempt] = []
    waiting: list[Claim] = []
    locked = asked.passed_by(claim.tenant_id for claim, _finished in batch)
    passed_by = tuple(claim for claim, _finished in batch if claim.tenant_id in locked)
    warned: list[Warned] = []
    may_start = any(row.has_held or row.has_waiting or row.steps for row in held.values())
    for claim, finished in batch:
        if claim.tenant_id in locked:
            continue
        row = held.pop(claim.action_id, None)
        if row is None or row.attempt != claim.attempt or claim.lease_epoch != lease.epoch:
            lost_claims.append(claim)
            continue
        try:
            end = _apply_effects(context, connection, checks, row, claim, finished, now_us)
        except WriteBlocked as blocked:
            if claim.action_id not in waited_long:
                waiting.append(claim)
                continue
            end = _ending(row, _refused(finished, blocked.conflict))
        outcome = Outcome.OK if isinstance(end, SealedAttempt) else end.end.outcome
        fetches.store(connection, claim, finished.fetched, outcome)
        if isinstance(end, SealedAttempt):
            sealed_attempts.append(end)
        else:
            endings.append(end)
    ready_queue.refresh(connection, {each.tenant_id for each in sealed_attempts}, touched)
    settled = settle(context, connection, endings, now_us, warned, touched)
    _follow_up(context, connection, batch, settled, now_us)
    fetches.delete_kept(
        connection, [each for each in settled if each.retry_at_us is None and each.outcome in fetches.REPEATED]
    )
    is_plain = len(settled) == len(batch) and not warned and all(map(_is_plain, endings, settled))
    return Committed(
        tuple(settled), tuple(lost_claims), tuple(sealed_attempts), tuple(waiting), passed_by, tuple(warned), is_plain,
        may_start,
    )  # fmt: skip


def _is_plain(ending: Ending, settled: Settled) -> bool:
    """Whether an ended action had neither effects nor receivers of its events."""
    return settled.state == "done" and not (ending.end.effects or ending.row.has_receivers)


def _follow_up(
    context: StoreContext,
    connection: Connection,
    batch: Sequence[tuple[Claim, Finished]],
    settled: Sequence[Settled],
    now_us: int,
) -> None:
    """Request another run for schedules that left changes unread."""
    unread = {
        claim.action_id
        for claim, finished in batch
        if finished.journal is not None and has_unread_changes(finished.journal.effects)
    }
    for each in settled:
        if each.state == "done" and each.action_id in unread and each.schedule_id is not None:
            change_triggers.request_continuation(
                context, connection, each.tenant_id, each.action_id, each.schedule_id, now_us
            )


def _apply_effects(
    context: StoreContext,
    connection: Connection,
    checks: BudgetChecks,
    row: AnyRow,
    claim: Claim,
    finished: Finished,
    now_us: int,
) -> Ending | SealedAttempt:
    """Write the effects of an attempt in a savepoint: a refused effect rolls back its own attempt only."""
    journal = finished.journal
    if finished.outcome is not Outcome.OK or journal is None or claim.trial:
        return _ending(row, finished)
    try:
        with savepoint(connection), checks.admit(claim, finished):
            if journal.home is not None:
                return sealed_commits.seal(context, connection, row, claim, finished, journal.write_set(), now_us)
            journal_commit.write(connection, journal, now_us=now_us)
    except NotApplied as refused:
        finished = _refused(finished, refused)
    except WriteBlocked:
        raise
    except Exception as error:
        if driver_of(connection).is_transaction_lost(connection):
            problem = database_errors.root_cause(error)
            if isinstance(problem, TransactionLost):
                problem.action_id = claim.action_id
            raise problem from None
        if _concerns_host(connection, error):
            raise
        # Errors of one attempt, such as a table that the platform has dropped, must not stop the others.
        _log.error("the outcome of attempt %d of action %s cannot be stored: %s", claim.attempt, claim.action_id,
                   type(error).__name__, exc_info=error,
                   extra={"tenant_id": claim.tenant_id, "action_id": claim.action_id})  # fmt: skip
        finished = failed_commit(finished, error)
    return _ending(row, finished)


def _refused(finished: Finished, refusal: NotApplied) -> Finished:
    """Return the end of an attempt whose journal was not applied."""
    return replace(finished, outcome=refusal.outcome, error=refusal.as_error())


def _ending(row: AnyRow, finished: Finished) -> Ending:
    """Return the end of an attempt in the form that the store writes."""
    recording = finished.recording
    record = None if recording is None else recording.packed(finished.outcome, finished.error)
    return Ending(row, finished if finished.outcome is Outcome.OK else replace(finished, result=None), record=record)


def failed_commit(finished: Finished, error: Exception) -> Finished:
    """Return the end of an attempt that cannot be committed: without effects, with a fault of the engine or of a constraint."""
    recording = finished.recording
    if isinstance(error, TransactionLost):
        outcome, said = error.refused.outcome, error.refused.as_error()
    elif _failed_at_commit(finished, error):
        outcome, said = Outcome.EFFECT_REFUSED, ScriptError("EffectRefused", CONSTRAINT_AT_COMMIT)
    else:
        message = f"the outcome of this run could not be stored: {type(error).__name__}"
        outcome, said, recording = Outcome.ENGINE_FAULT, ScriptError("EngineFault", message), None
    return Finished(
        outcome, error=said, usage=finished.usage, has_reservation=finished.has_reservation, recording=recording
    )


def _failed_at_commit(finished: Finished, error: Exception) -> bool:
    """Whether a constraint of a platform's table failed at the end of the transaction; SQLite cannot check it sooner."""
    at_commit = isinstance(error, DBAPIError) and error.statement is None and is_refusal(error)
    return at_commit and finished.journal is not None and finished.journal.writes_tables


def _concerns_host(connection: Connection, error: Exception) -> bool:
    """Whether the error concerns the whole transaction: a full disk, a lock, a lost connection."""
    if isinstance(error, DBAPIError):
        explained = driver_of(connection).explain(error, "")
        # Insufficient privilege on a table concerns one attempt only.
        return error.connection_invalidated or (
            explained is not None and explained.code != "database_privilege_missing"
        )
    return isinstance(error, Unavailable)

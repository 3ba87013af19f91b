"""Applies a sealed write set in a platform's own database, at most once for any number of nodes and tries.

A receipt, one row for each step of an action, is written in the same transaction before the effects: a second node with
the same write set waits for it and finds the verdict. A refusal writes a receipt too, because otherwise a later try
could succeed after the ledger has recorded the refusal.
"""

import json
import logging
from dataclasses import dataclass

from sqlalchemy import Connection, select, update
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.foreign import ForeignDatabase, receipts, state_of
from lodger.engine.effects import commit
from lodger.engine.effects.commit_errors import NotApplied
from lodger.engine.effects.database_errors import CONSTRAINT_AT_COMMIT, TransactionLost, is_refusal
from lodger.engine.effects.write_set import WriteSet
from lodger.engine.store.drivers import driver_of
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

_log = logging.getLogger("lodger.effects")
APPLIED, REFUSED = "applied", "refused"
_r = receipts.c


@dataclass(frozen=True, slots=True)
class Receipt:
    """Result of a write set in the platform's database. ``outcome`` is ``ok`` if it was applied; else it never will be."""

    outcome: Outcome
    error: ScriptError | None = None


class DatabaseUnavailable(Exception):
    """The database is unreachable, busy or full; whether the write set is applied is unknown until a later try."""


def apply(database: ForeignDatabase, write_set: WriteSet, attempt: int, *, now_us: int) -> Receipt:
    """Apply a write set, or return the result of an earlier try.

    Args:
        write_set: the part of a journal that belongs to this database.
        attempt: number of its attempt; a later attempt replaces a refused one.

    Raises:
        DatabaseUnavailable: the result is unknown; the same call later finds it.
    """
    try:
        try:
            with database.write() as connection:
                known = _claim(connection, write_set, attempt, Receipt(Outcome.OK), now_us)
                if known is None:
                    commit.apply(connection, write_set, now_us=now_us)
                return known or Receipt(Outcome.OK)
        except NotApplied as refused:
            verdict = Receipt(refused.outcome, refused.as_error())
        except TransactionLost as gone:
            verdict = Receipt(gone.refused.outcome, gone.refused.as_error())
        except CallRefused as refused:
            verdict = Receipt(Outcome.EFFECT_REFUSED, ScriptError("EffectRefused", refused.message))
        except DBAPIError as error:
            if is_transient(error):
                raise
            if is_refusal(error):  # by a constraint that is checked at the end of a transaction
                verdict = Receipt(Outcome.EFFECT_REFUSED, ScriptError("EffectRefused", CONSTRAINT_AT_COMMIT))
            else:
                _log.error("%s: action %s cannot be applied", database.place, write_set.action_id, exc_info=error)
                said = f"the commit in the platform's database failed: {type(error).__name__}"
                verdict = Receipt(Outcome.ENGINE_FAULT, ScriptError("EngineFault", said))
        with database.write() as connection:
            return _claim(connection, write_set, attempt, verdict, now_us) or verdict
    except DBAPIError as error:
        raise DatabaseUnavailable(f"{database.place}: {str(error.orig).strip().splitlines()[0]}") from error


def _claim(connection: Connection, write_set: WriteSet, attempt: int, verdict: Receipt, now_us: int) -> Receipt | None:
    """Write the receipt of this attempt; return an existing one, or None if this one was written."""
    values = {
        "attempt": attempt,
        "verdict": APPLIED if verdict.outcome is Outcome.OK else REFUSED,
        "detail": None if verdict.outcome is Outcome.OK else _detail(verdict),
        "made_us": now_us,
    }
    mine = (_r.action_id == write_set.action_id, _r.step == write_set.step)
    made = {"action_id": write_set.action_id, "step": write_set.step} | values
    # Waits for a concurrent transaction that is writing it.
    fresh = driver_of(connection).insert(receipts).values(made).on_conflict_do_nothing().returning(_r.step)
    if connection.execute(fresh).first() is not None:
        return None
    earlier = update(receipts).where(*mine, _r.attempt < attempt, _r.verdict == REFUSED).values(values)
    if connection.execute(earlier).rowcount == 1:
        return None
    row = connection.execute(select(receipts).where(*mine)).one()
    return Receipt(Outcome.OK) if row.verdict == APPLIED else _read(row.detail)


def _detail(verdict: Receipt) -> str:
    """Return the text of a receipt for a refused commit."""
    error = verdict.error or ScriptError("EngineFault", "")
    return json.dumps([verdict.outcome.value, error.name, error.message, error.file, error.line], ensure_ascii=False)


def _read(detail: str) -> Receipt:
    """Return the receipt of a refused commit from its stored text, as :func:`_detail` wrote it."""
    outcome, name, message, file, line = json.loads(detail)
    return Receipt(Outcome(outcome), ScriptError(name, message, file=file, line=line))


#: Classes of SQLSTATE after which the same transaction may succeed: connection, rollback, resources, lock, operator,
#: system.
_TRANSIENT = ("08", "25", "40", "53", "55", "57", "58")


def is_transient(error: DBAPIError) -> bool:
    """Whether the same write may succeed later: the database was unreachable, busy or full."""
    if error.connection_invalidated:
        return True
    state = state_of(error)
    if state:
        return state.startswith(_TRANSIENT)
    missing = isinstance(error, OperationalError) and "no such " in str(error.orig)
    return isinstance(error, OperationalError | InterfaceError) and not missing

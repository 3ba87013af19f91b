"""Database errors of writes: refusals by constraints and triggers, and transactions that the database has rolled back.

SQLite rolls back a whole transaction on ``RAISE(ROLLBACK)`` in a platform's trigger, ``ON CONFLICT ROLLBACK`` of a
table, and sometimes on a full disk. Savepoints are lost with it, as are the writes of other attempts in the same
transaction; later writes would be committed separately. So the transaction must end at once, and everything except the
run at fault begins again. PostgreSQL ends only the statement.
"""

from collections.abc import Iterator

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from lodger.engine.data.sets.foreign import state_of
from lodger.engine.effects.commit_errors import EffectRefused

#: For constraints checked at the end of a transaction, which no single call of the script violates.
CONSTRAINT_AT_COMMIT = "a constraint of the table forbids a change of this run"
ENDS_TRANSACTION = (
    "a trigger or a constraint of the table ends the whole transaction, which is not supported; "
    "use RAISE(ABORT) or ON CONFLICT ABORT"
)
TOO_SLOW = "the platform's table took too long to store the changes of this run; write less in one run"
NO_WRITES = (
    "the exposed view is not writable; the platform can add INSTEAD OF triggers to it, or expose it as read-only"
)
#: SQLSTATEs of locks: not available, deadlock, serialization failure.
HELD = frozenset({"55P03", "40P01", "40001"})
#: SQLSTATE of a statement that exceeded its time limit.
TOO_LONG = "57014"

#: Classes of SQLSTATE that do not refuse the written values (PostgreSQL's manual, appendix A). The others are data,
#: integrity, limits such as an index's, checks of views, errors that triggers raise, and classes that platforms define.
_NOT_REFUSALS = frozenset({"00", "01", "02", "03", "08", "0A", "0B", "0F", "0L", "0P", "0Z"})
_NOT_REFUSALS |= {"10", "20", "24", "25", "26", "28", "2B", "2D", "2F", "34", "3B", "3D", "3F"}
_NOT_REFUSALS |= {"40", "42", "53", "55", "57", "58", "72", "F0", "HV", "XX"}


def is_refusal(error: DBAPIError) -> bool:
    """Whether a constraint or trigger of the tables refused the write, as opposed to a server that is busy or gone."""
    state = state_of(error)
    return state[:2] not in _NOT_REFUSALS if state else isinstance(error, IntegrityError | DataError)


def is_read_only_view(error: DBAPIError) -> bool:
    """Whether the target is a read-only view, by SQLSTATE; see also ``Driver.is_read_only_view``."""
    # Object not in prerequisite state.
    return state_of(error) == "55000"


class TransactionLost(Exception):
    """The database has rolled back the whole transaction.

    Attributes:
        refused: error of the run at fault.
        action_id: action of that run, if the transaction had several.
    """

    def __init__(self, refused: EffectRefused) -> None:
        super().__init__(refused.message)
        self.refused = refused
        self.action_id: str | None = None


def root_cause(error: BaseException) -> BaseException:
    """Return the error that ended the transaction, if ``error`` only reports a missing savepoint."""
    *_, first = (each for each in _chain(error) if isinstance(each, TransactionLost | DBAPIError))
    return next((each for each in _chain(error) if isinstance(each, TransactionLost)), first)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__

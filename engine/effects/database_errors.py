"""What a database answers instead of taking a write: refusals of its tables, and transactions that it has ended by itself.

SQLite ends a whole transaction when a platform's trigger says ``RAISE(ROLLBACK)``, a rule of its table ``ON CONFLICT ROLLBACK``, and
sometimes when its disk is full. Savepoints are gone with it, and so is everything that others have written in the same transaction;
whatever is written next would be committed by itself. So nothing more may be written there: all of it begins anew, without the run
whose effect did it. PostgreSQL ends nothing but the statement.
"""

from collections.abc import Iterator

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from lodger.engine.data.sets.foreign import state_of
from lodger.engine.effects.commit_errors import EffectRefused
from lodger.engine.store.stores import driver_of

#: Of rules that a database looks at only when a transaction ends: no call of the script's is the one that broke it.
OF_THE_WHOLE = "a rule of the table forbids what this run wrote"
TOO_SLOW = "the platform's table took too long to take what this run wrote; write less at once"
NO_WRITES = "what the platform shows here is a view that takes no writes; let it give the view INSTEAD OF triggers, or expose it to be read"
#: SQLSTATEs of a lock that somebody has: not given in time, deadlock, serialization.
HELD = frozenset({"55P03", "40P01", "40001"})
#: SQLSTATE of a statement that its time limit ended.
TOO_LONG = "57014"

#: Classes of SQLSTATE by which PostgreSQL says other things than that it refuses what is written (its manual, appendix A). Left are
#: data, integrity, limits such as an index's, a view's check, what triggers raise, and classes that platforms make up for themselves.
_OTHERS = frozenset({"00", "01", "02", "03", "08", "0A", "0B", "0F", "0L", "0P", "0Z"})
_OTHERS |= {"10", "20", "24", "25", "26", "28", "2B", "2D", "2F", "34", "3B", "3D", "3F"}
_OTHERS |= {"40", "42", "53", "55", "57", "58", "72", "F0", "HV", "XX"}


def of_the_tables(error: DBAPIError) -> bool:
    """Whether the tables' own rules refuse what was written, as against a server that is busy, gone or otherwise unable."""
    state = state_of(error)
    return state[:2] not in _OTHERS if state else isinstance(error, IntegrityError | DataError)


def takes_no_writes(error: DBAPIError) -> bool:
    """Whether what was to be written is a view that takes no writes, by SQLSTATE; see also ``Driver.is_read_only_view``."""
    # Object not in prerequisite state.
    return state_of(error) == "55000"


_WHAT = "a trigger or a rule of the table ends the whole transaction, and is not obeyed; let it say RAISE(ABORT) or ON CONFLICT ABORT"


class TransactionLost(Exception):
    """The transaction is gone.

    Attributes:
        refused: what becomes of the run whose effect did it.
        action_id: of that run, where the transaction was one of several.
    """

    def __init__(self, refused: EffectRefused) -> None:
        super().__init__(refused.message)
        self.refused = refused
        self.action_id: str | None = None


def refused(named: str, *, index: int, place: str | None) -> TransactionLost:
    """Give the error for an effect that ended the transaction."""
    return TransactionLost(EffectRefused("rolled_back", f"{named}: {_WHAT}", index=index, place=place))


def over(connection: Connection) -> bool:
    """Whether the transaction that the connection believes to be in is gone."""
    return driver_of(connection).is_transaction_lost(connection)


def behind(error: BaseException) -> BaseException:
    """Give what ended the transaction, where ``error`` only says that its savepoint is not there any more."""
    *_, first = (each for each in _chain(error) if isinstance(each, TransactionLost | DBAPIError))
    return next((each for each in _chain(error) if isinstance(each, TransactionLost)), first)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__

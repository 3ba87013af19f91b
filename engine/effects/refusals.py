"""What a database says when it does not take a write: whose doing that is, and what the author is told of it."""

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from lodger.engine.data.sets.foreign import state_of

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

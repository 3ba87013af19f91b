"""A part of a transaction that is taken back by itself when it fails: what a run asked for, among the ends of others.

SQLAlchemy's ``begin_nested`` does the same with an object, a name and two compiled statements for each, which no cache of
statements keeps: for the ends of many small runs in one transaction that was a tenth of all work. These are always the same
three statements. Savepoints of one name may lie within each other: the innermost is meant.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

_SET, _BACK, _DROP = (f"{verb} lodger_part" for verb in ("SAVEPOINT", "ROLLBACK TO SAVEPOINT", "RELEASE SAVEPOINT"))


@contextmanager
def savepoint(connection: Connection) -> Iterator[None]:
    """Take back what is done inside when it raises.

    Raises:
        DBAPIError: the savepoint is gone with its transaction; what ended that is its context, see
            :func:`lodger.engine.effects.database_errors.behind`.
    """
    connection.exec_driver_sql(_SET)
    try:
        yield
    except BaseException:
        # Of a connection that is gone the server has taken everything back; to ask it would hide what happened.
        if not connection.closed and not connection.invalidated:
            connection.exec_driver_sql(_BACK)
            connection.exec_driver_sql(_DROP)
        raise
    connection.exec_driver_sql(_DROP)

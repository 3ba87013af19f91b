"""A savepoint: a part of a transaction that is rolled back alone when it fails.

Used for the effects of one attempt in a transaction with many. SQLAlchemy's ``begin_nested`` creates an object, a name
and two compiled statements each time; that was a tenth of the work of small runs. These are always the same three
statements. Savepoints of one name may be nested: a statement refers to the innermost.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from lodger.engine.store.drivers import prepared

_SET, _BACK, _DROP = (f"{verb} lodger_part" for verb in ("SAVEPOINT", "ROLLBACK TO SAVEPOINT", "RELEASE SAVEPOINT"))


@contextmanager
def savepoint(connection: Connection) -> Iterator[None]:
    """Roll back the statements inside if an exception is raised.

    Raises:
        DBAPIError: the savepoint was lost with its transaction; the cause is the exception's context, see
        :func:`lodger.engine.effects.database_errors.root_cause`.
    """
    # On a server that is far away, the statements go with the first one inside, and with the next one afterwards.
    before = prepared.later(connection, _SET)
    try:
        yield
        if prepared.sent(connection) > before:
            prepared.flush(connection)
    except BaseException:
        # A server rolls back a lost connection by itself; a statement would hide the cause.
        if not connection.closed and not connection.invalidated:
            with suppress(DBAPIError):
                prepared.flush(connection)
            connection.exec_driver_sql(_BACK)
            prepared.later(connection, _DROP)
        raise
    prepared.later(connection, _DROP)

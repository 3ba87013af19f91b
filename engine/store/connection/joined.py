"""Verbs in the caller's transaction: a connection of SQLAlchemy, psycopg, sqlite3 or Django, as a connection of SQLAlchemy.

The caller commits or rolls back; nothing here does, nor closes the connection.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError

from lodger.engine.core.context_values import holding
from lodger.engine.core.errors import InputError
from lodger.engine.store.connection.database import Database, identity
from lodger.engine.store.drivers.borrowed import borrow

#: The connection that the verb of this context joins.
_joined: ContextVar[Any] = ContextVar("lodger_joined", default=None)


def joining(connection: Any) -> AbstractContextManager[None]:
    """Let the verbs of the block use a connection of the caller; None for one of their own."""
    return holding(_joined, connection)


def joined(database: Database, committed: Callable[[], None]) -> Connection | None:
    """Return the caller's connection, None without one.

    Args:
        committed: called after the caller's commit, where that can be seen.

    Raises:
        InputError: connection_unknown, connection_no_transaction, connection_elsewhere.
    """
    given = _joined.get()
    if given is None:
        return None
    found = borrow(given, database.engine)
    try:
        same = identity(found) == database.ask(identity)
    except DBAPIError as error:
        raise InputError("connection_elsewhere") from error
    if not same:
        raise InputError("connection_elsewhere")
    database.driver.require_begun(found)
    if isinstance(given, Connection):
        event.listen(found, "commit", lambda _connection: committed(), once=True)
    return found

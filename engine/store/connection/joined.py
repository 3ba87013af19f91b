"""Verbs in the caller's transaction: a connection of SQLAlchemy, psycopg, sqlite3 or Django, as a connection of SQLAlchemy.

The caller commits or rolls back; nothing here does, nor closes the connection.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Connection, event, inspect, select
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from lodger.engine.core.errors import InputError
from lodger.engine.store.connection.database import Database
from lodger.engine.store.drivers.prepared import ForeignCursor
from lodger.engine.store.schema.nodes import ledger

#: The connection that the verb of this context joins.
_joined: ContextVar[Any] = ContextVar("lodger_joined", default=None)


@contextmanager
def joining(connection: Any) -> Iterator[None]:
    """Let the verbs of the block use a connection of the caller; None for one of their own."""
    token = _joined.set(connection)
    try:
        yield
    finally:
        _joined.reset(token)


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
    found = _connection(given, database)
    ForeignCursor(found)
    try:
        there = inspect(found).has_table(ledger.name)
        same = there and found.scalar(select(ledger.c.identity)) == _identity(database)
    except DBAPIError as error:
        raise InputError("connection_elsewhere") from error
    if not same:
        raise InputError("connection_elsewhere")
    if isinstance(given, Connection):
        event.listen(found, "commit", lambda _connection: committed(), once=True)
    return found


def _identity(database: Database) -> str | None:
    with database.read() as connection:
        return connection.scalar(select(ledger.c.identity))


def _connection(given: Any, database: Database) -> Connection:
    if isinstance(given, Connection):
        return given
    if hasattr(given, "run_sync"):  # an AsyncConnection or AsyncSession
        raise InputError("connection_async")
    if hasattr(given, "get_bind") and callable(getattr(given, "connection", None)):  # a session of SQLAlchemy
        found: Connection = given.connection()
        return found
    if hasattr(given, "ensure_connection"):  # Django's
        given.ensure_connection()
        given = given.connection
    kind = type(given).__mro__
    module = next((each.__module__.partition(".")[0] for each in kind if each.__module__ != "builtins"), "")
    modules = {each.__module__.partition(".")[0] for each in kind}
    if not callable(getattr(given, "cursor", None)):
        raise InputError("connection_unknown", given=f"{module}.{type(given).__name__}")
    if getattr(database.engine.dialect.dbapi, "__name__", "").partition(".")[0] not in modules:
        raise InputError("connection_elsewhere")
    if _idle(given):
        raise InputError("connection_no_transaction")
    borrowed = _Borrowed(given)
    pool = StaticPool(lambda: borrowed, reset_on_return=None, dialect=database.engine.dialect)
    return Engine(pool, database.engine.dialect, database.engine.url, hide_parameters=True).connect()


def _idle(connection: Any) -> bool:
    """Whether a connection is outside a transaction that its next statement would not begin."""
    if hasattr(connection, "info"):
        return bool(connection.info.transaction_status.name == "IDLE" and connection.autocommit)
    return connection.isolation_level is None and not connection.in_transaction


class _Borrowed:
    """A connection that stays the caller's: what would end its transaction does nothing."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def commit(self) -> None:
        """Leave it to the caller."""

    def rollback(self) -> None:
        """Leave it to the caller."""

    def close(self) -> None:
        """Leave it to the caller."""

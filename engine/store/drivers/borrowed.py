"""Connections that a caller lends."""

from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.pool import StaticPool

from lodger.engine.core.errors import InputError


def borrow(given: Any, own: Engine) -> Connection:
    """Return a connection of SQLAlchemy over a caller's: SQLAlchemy's own, a session's, Django's, or the database module's.

    Args:
        own: the engine of the ledger.

    Raises:
        InputError: connection_async, connection_unknown, connection_elsewhere, connection_no_transaction.
    """
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
    if getattr(own.dialect.dbapi, "__name__", "").partition(".")[0] not in modules:
        raise InputError("connection_elsewhere")
    if _idle(given):
        raise InputError("connection_no_transaction")
    borrowed = _Borrowed(given)
    pool = StaticPool(lambda: borrowed, reset_on_return=None, dialect=own.dialect)
    return Engine(pool, own.dialect, own.url, hide_parameters=True).connect()


def _idle(connection: Any) -> bool:
    """Whether a connection is outside any transaction and commits each statement by itself."""
    if hasattr(connection, "info"):
        return bool(connection.info.transaction_status.name == "IDLE" and connection.autocommit)
    return connection.isolation_level is None and not connection.in_transaction


class _Borrowed:
    """A connection that stays the caller's: commit, rollback and close do nothing."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def commit(self) -> None:
        """Do nothing: the caller commits its own transaction."""

    def rollback(self) -> None:
        """Do nothing: the caller rolls back its own transaction."""

    def close(self) -> None:
        """Do nothing: the caller closes its own connection."""

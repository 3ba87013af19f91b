"""Connections to PostgreSQL: session settings, timeouts, and the meaning of server errors.

A session of the server itself is given its settings once, and keeps the statements of the hot path prepared. Behind a transaction
pooler, which may give each transaction another session, settings are made at the beginning of each transaction and end
with it, and nothing is prepared. No lock outlives its transaction.
"""

import math
import select
import sys
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from lodger.engine.core.clock import SystemClock
from lodger.engine.core.errors import Unavailable
from lodger.engine.store.drivers import addresses
from lodger.engine.store.drivers.patience import PATIENCE_S

DRIVER = "postgresql+psycopg"
#: A read-only snapshot that all statements of a transaction share; it never waits.
READ: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
LOCK_TIMEOUT_MS = 10_000
#: Of an upgrade, for each table that it changes.
UPGRADE_LOCK_MS = 1000

_CONNECT: dict[str, Any] = {
    "connect_timeout": 5,
    "application_name": "lodger",
    # A database in SQL_ASCII would make every text bytes, and refuse none.
    "client_encoding": "utf8",
    # A lost server or network is detected within a lease, not after the kernel's two hours. The watchdog handles
    # connections where packets are still acknowledged but never answered.
    "keepalives_idle": 3,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 7_000,
}
#: Ways of the planner that read whole tables or indexes. Without statistics, as of a new ledger, it would choose them, and a
#: prepared statement would still go them when the tables have grown; the hot path looks everything up by key.
SCANS = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
SESSION: dict[str, Any] = {
    # A lock held for that long means a stuck transaction: roll back and try again later.
    "lock_timeout": LOCK_TIMEOUT_MS,
    # Limits how long a process that is stopped within a transaction keeps its tenants' locks.
    "idle_in_transaction_session_timeout": LOCK_TIMEOUT_MS,
    # Compiling a statement of one millisecond would take a hundred.
    "jit": "off",
    **dict.fromkeys(SCANS, "off"),
    # A zone east of Greenwich would show instants of the year 9999 as the year 10000, which Python does not support.
    "timezone": "'UTC'",
}
#: Statements that a session keeps prepared: all of the hot path.
PREPARED = 500
#: Connections that were idle for longer are tested before they are used, seconds: a lost server or network ends none.
IDLE_S = 1.0
_clock = SystemClock()
_RETURNED = "lodger_returned_s"
#: Advisory lock key: the bytes "lodger", which no other program uses.
_UPGRADE_LOCK = int.from_bytes(b"lodger")


def open_pool(url: URL, patience_s: float = PATIENCE_S, options: dict[str, Any] | None = None) -> Engine:
    """Return a connection pool, without opening a connection.

    Args:
        patience_s: maximum time to wait for an answer of the server.
        options: execution options of every connection.
    """
    given = {name: value for name, value in _CONNECT.items() if name not in url.query}
    # Last in, first out: few connections are used, and these have their statements prepared.
    engine = create_engine(url, connect_args=given, pool_size=8, max_overflow=24, pool_use_lifo=True,
                           isolation_level="READ COMMITTED", hide_parameters=True, execution_options=options or {})  # fmt: skip
    event.listen(engine, "begin", _begin)
    event.listen(engine, "checkin", _returned)

    def check_taken(raw: Any, entry: ConnectionPoolEntry, _proxy: object) -> None:
        """Check a connection that the pool hands out; for a broken one raise DisconnectionError, and the pool opens another."""
        idle_s = _clock.elapsed_s() - entry.info.get(_RETURNED, math.inf)  # a new one was never returned
        try:
            raw.settle()
            if idle_s > IDLE_S or has_data(raw):
                engine.dialect.do_ping(raw)
        except engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError from error  # the pool connects anew

    event.listen(engine, "checkout", check_taken)

    def connect_watched(_dialect: object, _record: object, args: Any, given: Any) -> Any:
        """Open a connection whose statements are given up when the server is silent for too long."""
        return _connect(patience_s, *args, **given)

    event.listen(engine, "do_connect", connect_watched)
    return engine


def has_data(raw: Any, wait_s: float = 0.0) -> bool:
    """Whether the server has sent data that nothing was asked for, or does within ``wait_s``: a notification, or that it leaves."""
    waiting = select.poll()
    waiting.register(raw.fileno(), select.POLLIN)
    return bool(waiting.poll(wait_s * 1000))


def _connect(patience_s: float, *args: Any, **given: Any) -> Any:
    """Open a connection that is watched for its answers."""
    from lodger.engine.store.drivers.postgresql.watchdog import Cursor, WatchedConnection  # psycopg is an extra

    connection = WatchedConnection.connect(*args, cursor_factory=Cursor, **given)
    connection.patience_s = patience_s
    autocommit, connection.autocommit = connection.autocommit, True
    try:
        # A pooler makes up the number by which a client cancels its queries.
        connection.pooled = connection.execute("SELECT pg_backend_pid()").fetchall() != [(connection.info.backend_pid,)]
        # Otherwise only what asks for it is prepared.
        connection.prepare_threshold = None if connection.pooled else sys.maxsize
        connection.prepared_max = PREPARED
        if not connection.pooled:
            connection.execute("; ".join(f"SET {name} = {value}" for name, value in SESSION.items()))
    except BaseException:
        connection.close()
        raise
    connection.autocommit = autocommit
    return connection


def connect(url: URL | str, patience_s: float = PATIENCE_S) -> Any:
    """Return a psycopg connection outside of any pool, in autocommit mode."""
    url = addresses.parse(url).set(drivername=DRIVER)
    args, given = url.get_dialect()().create_connect_args(url)
    return _connect(patience_s, *args, **(_CONNECT | dict(given)), autocommit=True)


def _begin(connection: Connection) -> None:
    """Set the options of a transaction that begins, because behind a pooler a session cannot hold them."""
    raw: Any = connection.connection.driver_connection
    if raw.pooled:
        for name, value in SESSION.items():
            raw.send(f"SET LOCAL {name} = {value}", is_awaited=False)


def _returned(_raw: object, entry: ConnectionPoolEntry) -> None:
    """Note when a connection was returned to the pool."""
    entry.info[_RETURNED] = _clock.elapsed_s()


def prepare_upgrade(connection: Connection) -> None:
    """Let one process at a time check and change the schema; refuse a database that cannot store all of Unicode.

    Raises:
        Unavailable: database_encoding.
    """
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise Unavailable("database_encoding", encoding=encoding)
    # A lock on a table is given up soon, and the upgrade begun again: all that comes after it in the queue waits meanwhile.
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {UPGRADE_LOCK_MS}")


def explain(error: DBAPIError, place: str) -> Unavailable | None:
    """Return the error for a failure of the server or the network, None for an error of a statement."""
    state = getattr(error.orig, "sqlstate", None)
    message = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    if state is None:
        refused = "FATAL:" in str(error.orig)
        if not error.connection_invalidated and not refused and not _is_connecting(error):
            return None
        # Errors without an SQLSTATE: the text distinguishes a server that starts or stops from one that refuses.
        gone = not refused or "the database system is" in str(error.orig)
        code = "database_unreachable" if gone else "database_login_refused"
        return Unavailable(code, place=place, reason=message)
    if getattr(getattr(error.orig, "diag", None), "source_function", None) == "RevalidateCachedQuery":
        return Unavailable("database_busy.tables", place=place, reason=message)
    for sign, code in _STATES.items():
        if state.startswith(sign):
            return Unavailable(code, place=place, reason=message)
    return None


def _is_connecting(error: DBAPIError) -> bool:
    """Whether an error was raised while a connection was opened."""
    return type(error.orig).__name__ in {"OperationalError", "ConnectionTimeout"} and error.statement is None


#: By SQLSTATE or its class (PostgreSQL, Appendix A).
_STATES = {
    "08P01": "database_unreachable.pooler",
    "08": "database_unreachable",
    "57P": "database_unreachable",
    "25P03": "database_busy.idle",
    "40": "database_busy",
    "55P03": "database_busy",
    "53100": "disk_full",
    "53": "database_connections_full",
    "28": "database_login_refused",
    "3D000": "database_login_refused",
    "3F000": "database_schema_missing",
    "25006": "database_read_only.server",
    "42501": "database_privilege_missing",
}

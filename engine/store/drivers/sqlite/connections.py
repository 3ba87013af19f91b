"""Connections to SQLite files: pragmas, transactions, the commit watcher, and the meaning of SQLite's errors."""

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.features import Check

BUSY_TIMEOUT_MS = 10_000
#: Characters of a statement above which the connection that has run it is not kept.
LONGEST_PREPARED = 16_000
#: Execution options of a read-only transaction.
READ = {"lodger_read": True}


def prepare(raw: Any, synchronous: str) -> None:
    """Set up a new connection to the ledger."""
    # The DBAPI's own transaction handling would begin deferred transactions implicitly.
    raw.isolation_level = None
    for pragma in (
        # Readers never block the writer nor the writer them; the file survives kill -9.
        "journal_mode = WAL",
        # WAL with a lower setting loses the last commits on a power failure, and mails could be sent twice.
        f"synchronous = {synchronous}",
        # Wait for the write lock of another process instead of failing at once.
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        # SQLite checks foreign keys only on request, per connection.
        "foreign_keys = ON",
        # Sorting a page of history does not use the disk, which may be full.
        "temp_store = MEMORY",
        # 32 MiB of pages: the hot indexes of a million schedules stay in memory.
        "cache_size = -32768",
    ):
        raw.execute(f"PRAGMA {pragma}")


def close_after_long(_cursor: object, statement: str, _parameters: object, context: Any) -> None:
    """Close a connection after the transaction of a long statement: it would keep it prepared, twelve bytes for each character."""
    if len(statement) > LONGEST_PREPARED:
        context.root_connection.connection.invalidate(soft=True)


def require_regular(path: str) -> None:
    """Raise Unavailable (not_a_database) for a pipe or a device: to open it may wait for ever."""
    with suppress(OSError):  # it does not exist, or SQLite says what is wrong
        mode = os.stat(path).st_mode  # noqa: PTH116 - as below
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise Unavailable("not_a_database.kind", place=path)


def begin(connection: Connection) -> None:
    """Begin a transaction on the ledger's own pool."""
    # A deferred transaction that turns into a writer fails at once with SQLITE_BUSY and ignores busy_timeout.
    deferred = connection.get_execution_options().get("lodger_read")
    prepared.fetch(connection, "BEGIN DEFERRED" if deferred else "BEGIN IMMEDIATE", ())


class LedgerFile:
    """The file of a pool: no connection and no transaction begins after it was deleted, moved or replaced. Costs one stat(2) each."""

    def __init__(self, pool: Engine) -> None:
        self._path = str(pool.url.database)
        self._opened: tuple[int, int] | None = None
        event.listen(pool, "do_connect", self._require_same)
        event.listen(pool, "connect", self._note)
        event.listen(pool, "begin", self._require_same)

    def _note(self, *_of_event: object) -> None:
        """Note the identity of the file at its first use."""
        self._opened = self._opened or _identity(self._path)

    def _require_same(self, *_of_event: object) -> None:
        """Raise Unavailable (ledger_replaced) if the file is another one than at its first use; create it before that."""
        if self._opened is None:
            require_regular(self._path)
            create_private(self._path)
        elif _identity(self._path) != self._opened:
            raise Unavailable("ledger_replaced", path=self._path)


def create_private(path: str) -> None:
    """Create the file of a ledger for its owner alone; SQLite gives the WAL and its index the mode of the file."""
    if not path.startswith("file:"):
        with suppress(OSError):  # it exists, or SQLite says what is wrong
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def check_modes(path: str) -> Check:
    """Check that no other user can read the files of a ledger, or put others into their place."""
    file = Path(path).absolute()
    try:
        folder = file.parent.stat()
        modes = {
            each: each.stat().st_mode for each in (file, Path(f"{file}-wal"), Path(f"{file}-shm")) if each.exists()
        }
    except OSError as error:
        return Check("ledger's files", "warn", "unknown", str(error), f"let this user read the folder {file.parent}")
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        why = f"every user can replace the files in {file.parent}"
        return Check("ledger's files", "fail", "open folder", why, f"chmod o-w {file.parent}")
    if open_to_others := [str(each) for each, mode in modes.items() if mode & 0o007]:
        why = f"every user can read {', '.join(open_to_others)}"
        return Check("ledger's files", "warn", "open files", why, f"chmod o-rwx {' '.join(open_to_others)}")
    return Check("ledger's files", "ok", "closed to others")


def require_same_file(connection: Connection) -> None:
    """Refuse a connection of the platform whose path names another file than it opened; the next one opens the new file.

    Raises:
        Unavailable: database_replaced.
    """
    path = str(connection.engine.url.database or "")
    if path in {"", ":memory:"} or path.startswith("file:"):
        return
    found = _identity(path)
    if found is None or connection.connection.info.setdefault("lodger_file", found) != found:
        connection.invalidate()
        raise Unavailable("database_replaced", path=path)


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of a file, None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - before each transaction
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class OneWriter:
    """Keeps one connection for the write transactions of all threads, one at a time, until its pool is disposed of.

    Its cached pages and prepared statements stay valid from one transaction to the next: a connection drops all its
    pages after a commit of another one. It also watches for commits of others: its own do not change the file's version.
    """

    def __init__(self, pool: Engine) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._keeps = True
        #: The file's version as this connection saw it last, None if it has not; and how often that was another one.
        self._seen: int | None = None
        self._changes = 0
        event.listen(pool, "engine_disposed", self._disposed)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Open a write transaction; it commits at the end and rolls back on any exception."""
        try:
            with self._lock:
                connection = self._connection = self._connection or self._pool.connect()
                try:
                    with connection.begin():
                        self._look(connection)
                        yield connection
                except BaseException:
                    # The pool resets it: whatever the error left behind, the next transaction begins anew.
                    self._give_back()
                    raise
        finally:
            if not self._keeps:
                self._drop()

    def version(self) -> int:
        """Return a number that changes after each commit of another connection, in any process, and while that cannot be told.

        It never waits: during a transaction of this process it is the number at its begin, and while the transaction waits for
        another process's the number of before. Without a connection, after a failure, it opens none.
        """
        if self._keeps and self._lock.acquire(blocking=False):
            try:
                if self._connection is None:
                    self._changes += 1
                else:
                    raw: Any = self._connection.connection.dbapi_connection
                    raw.execute("PRAGMA busy_timeout = 0")
                    self._look(self._connection)
                    raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            except (sqlite3.Error, DBAPIError):
                self._give_back()
                self._changes += 1
            finally:
                self._lock.release()
            if not self._keeps:
                self._drop()
        return self._changes

    def _look(self, connection: Connection) -> None:
        """Count the changes that other processes have committed."""
        raw: Any = connection.connection.dbapi_connection
        ((seen,),) = raw.execute("PRAGMA data_version").fetchall()
        self._changes += seen != self._seen
        self._seen = seen

    def _disposed(self, _pool: Engine) -> None:
        """Keep no connection from now on: the pool was closed."""
        self._keeps = False
        self._drop()

    def _drop(self) -> None:
        """Close the kept connection, unless a transaction holds it."""
        # A transaction that is open does the same at its end.
        if self._lock.acquire(blocking=False):
            try:
                self._give_back()
            finally:
                self._lock.release()

    def _give_back(self) -> None:
        """Close the kept connection."""
        connection, self._connection, self._seen = self._connection, None, None
        if connection is not None:
            connection.close()


def explain(message: str, place: str) -> Unavailable | None:
    """Return the error for a message of SQLite about the host, None for any other message."""
    text = message.lower()
    for sign, code in _SIGNS.items():
        if sign in text:
            if code in {"database_read_only", "database_unreadable"} and _is_on_read_only_disk(place):
                return Unavailable("database_read_only.disk", place=place)
            return Unavailable(code, place=place, reason=message)
    return None


def _is_on_read_only_disk(path: str) -> bool:
    """Whether the folder of a file is on a file system that is mounted read-only."""
    try:
        return bool(os.statvfs(Path(path).absolute().parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False


_SIGNS = {
    "file is not a database": "not_a_database",
    "malformed": "database_damaged",
    "unable to open database file": "database_unreadable",
    "readonly database": "database_read_only",
    "disk is full": "disk_full",
    "disk i/o error": "disk_error",
    "database is locked": "database_busy.file",
}

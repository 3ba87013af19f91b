"""Opens the ledger's database and hands out its two kinds of transaction: one that writes, one that only reads.

SQLite: one writer at a time per process (a lock), ``BEGIN IMMEDIATE`` between processes. PostgreSQL: as many writers as
there are (:mod:`lodger.engine.store.queue.ready_queue` says who waits for whom); see
:mod:`lodger.engine.store.connection.postgresql`. Everything above this module speaks SQLAlchemy Core and hardly knows which database it is.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.store.connection import postgresql, timeouts
from lodger.engine.store.connection.commit_watcher import ServerWitness, Witness
from lodger.engine.store.connection.notify import Hints
from lodger.engine.store.migrations.revision import Progress, current, head, silent

BUSY_TIMEOUT_MS = 10_000
#: Durability of a commit on SQLite: FULL survives a power cut, NORMAL a killed process only.
SYNCHRONOUS = ("FULL", "NORMAL")

_READ = {"lodger_read": True}
_EXAMPLES = "sqlite:///path or postgresql://user@host/name"


class Database:
    """The open ledger.

    Args:
        url: ``sqlite:///path``, ``postgresql://…`` or a plain path of a SQLite file; ``:memory:`` is refused
            because a second connection would see another database.
        synchronous: see :data:`SYNCHRONOUS`; SQLite only.
        patience_s: how long a server may be silent while it owes an answer; PostgreSQL only.
        progress: told about each migration.

    Raises:
        Unavailable: not_a_database, database_unreadable, database_read_only, disk_full, database_newer, database_busy; of a server also
            database_unreachable, database_refused, database_encoding.
        InputError: database_url.
    """

    def __init__(
        self,
        url: str,
        *,
        synchronous: str = "FULL",
        progress: Progress = silent,
        patience_s: float = timeouts.PATIENCE_S,
    ) -> None:
        self.url = _parsed(url)
        self._synchronous = synchronous
        self.hints = Hints()
        sqlite = self.url.get_backend_name() == "sqlite"
        self._writer: AbstractContextManager[object] = threading.Lock() if sqlite else nullcontext()
        self._reading: dict[str, Any] = _READ if sqlite else postgresql.READ
        self._closed = False
        self._patience_s = patience_s
        #: How many transactions that may have written have ended in this process.
        self.written = 0
        self._counting = threading.Lock()
        self.engine = self.opened() if sqlite else postgresql.opened(self.url, patience_s)
        event.listen(self.engine, "checkin", self._returned)
        try:
            with self.write() as connection:
                if not sqlite:
                    postgresql.prepare_upgrade(connection)
                if current(connection) != head():
                    from lodger.engine.store.migrations.upgrade import upgrade

                    with timeouts.waiting(timeouts.UPGRADE_S):
                        upgrade(connection, progress)
        except BaseException:
            self.close()
            raise

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self.engine.dialect.name

    def opened(self) -> Engine:
        """Return a pool of connections to this file."""
        engine = create_engine(self.url, connect_args={"check_same_thread": False}, pool_size=8, max_overflow=8)
        event.listen(engine, "connect", self._prepare)
        event.listen(engine, "begin", _begin)
        return engine

    def _prepare(self, raw: Any, _record: object) -> None:  # noqa: ANN401 - a driver's connection
        # The driver's own transaction handling would begin deferred transactions behind our back.
        raw.isolation_level = None
        for pragma in (
            # Readers never block the writer nor the writer them; survives kill -9 with the file intact.
            "journal_mode = WAL",
            # WAL alone loses the last commits on a power cut: with FULL a mail that left is never sent twice.
            f"synchronous = {self._synchronous}",
            # Another process may hold the write lock: wait for it instead of failing at once.
            f"busy_timeout = {BUSY_TIMEOUT_MS}",
            # SQLite checks foreign keys only when asked, per connection.
            "foreign_keys = ON",
            # Sorting for a page of history stays off the disk, which may be full.
            "temp_store = MEMORY",
            # 32 MiB of pages: the hot indexes of a million schedules stay in memory.
            "cache_size = -32768",
        ):
            raw.execute(f"PRAGMA {pragma}")

    @contextmanager
    def write(self, *, counted: bool = True) -> Iterator[Connection]:
        """Give one transaction that may write; commits at the end, rolls back on any exception.

        Args:
            counted: whether :attr:`written` counts it.
        """
        try:
            with self._writer, _teaching(self.url), self.engine.begin() as connection:
                yield connection
        finally:
            # Whatever became of it: an answer that was lost on the way may have been a commit.
            if counted:
                with self._counting:
                    self.written += 1

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give one consistent snapshot; never waits for the writer. Nothing may be written in it."""
        with _teaching(self.url), self.engine.connect() as connection:
            connection = connection.execution_options(**self._reading)
            with connection.begin():
                yield connection

    def witness(self) -> Witness | None:
        """Give who sees that somebody has committed; None where a server has to be asked. The caller closes it."""
        return Witness(str(self.url.database)) if self.dialect == "sqlite" else None

    def server_witness(self) -> ServerWitness | None:
        """Give who asks a server whether somebody has committed; None where there is no server. The caller closes it."""
        if self.dialect == "sqlite":
            return None
        return ServerWitness(partial(postgresql.alone, self.url, self._patience_s))

    def close(self) -> None:
        """Let go of every connection, of one that a thread still uses when it is done with it; safe to call twice."""
        self._closed = True
        self.engine.dispose()

    def _returned(self, _raw: object, entry: ConnectionPoolEntry) -> None:
        # The pool that is disposed of knows nothing of a connection that is out, and would keep it when it comes back.
        if self._closed:
            entry.close()


def _begin(connection: Connection) -> None:
    # A deferred transaction that turns into a writer fails at once with SQLITE_BUSY and ignores busy_timeout.
    deferred = connection.get_execution_options().get("lodger_read")
    connection.exec_driver_sql("BEGIN DEFERRED" if deferred else "BEGIN IMMEDIATE")


def _parsed(url: str) -> URL:
    try:
        # A path is no URL: ? and # are letters of a file's name.
        parsed = make_url(url) if "://" in url else URL.create("sqlite", database=_absolute(url))
        if parsed.drivername in {"postgresql", "postgres"}:
            parsed = parsed.set(drivername=postgresql.DRIVER)
        parsed.get_dialect().import_dbapi()
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise InputError(
            "database_url",
            f"{shown(url)!r} names no database that Lodger can open",
            why=str(error),
            fix="pip install 'lodger[postgres]'" if "psycopg" in str(error) else f"give a path, {_EXAMPLES}",
        ) from error
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise InputError(
            "database_url",
            f"Lodger keeps no ledger in {parsed.get_backend_name()}",
            why="its transactions were proved on SQLite and PostgreSQL",
            fix=f"give a path, {_EXAMPLES}",
        )
    if parsed.get_backend_name() == "sqlite" and parsed.database in {None, "", ":memory:"}:
        raise InputError(
            "database_url",
            "a database in memory cannot hold a ledger",
            why="every connection would see a database of its own",
            fix="give a path; a temporary folder will do",
        )
    return parsed


def shown(url: str) -> str:
    """Give an address as people may read it: without its password, also when it is no address at all."""
    return _PASSWORD.sub(r"\1\2***", url) if "://" in url else url


#: Between a user's name and the last @, or named in the query, as libpq allows too.
_PASSWORD = re.compile(r"(://[^:/@?]*:).*(?=@)|([?&]password=)[^&]*")


def _absolute(path: str) -> str:
    return path if path in {"", ":memory:"} else str(Path(path).absolute())


@contextmanager
def _teaching(url: URL) -> Iterator[None]:
    """Turn what the driver says about the host into an error that says what to do."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise _unstorable("half of a surrogate pair") from error
    except DBAPIError as error:
        if "NUL (0x00)" in str(error.orig):
            raise _unstorable("a NUL character") from error
        taught = told_of(error, str(url.database), of_server=url.drivername == postgresql.DRIVER)
        if taught is None:
            raise
        raise taught from error


def _unstorable(what: str) -> InputError:
    return InputError(
        "text_unstorable",
        f"a text that was given holds {what}",
        why="no database can keep or compare it",
        fix="leave it out; names, ids and keys are printable text",
    )


def told_of(error: DBAPIError, place: str, *, of_server: bool) -> Unavailable | None:
    """Give the teaching error for a driver's error about the host, or None when it is about something else."""
    return postgresql.explain(error, place) if of_server else explain(str(error.orig), place)


def explain(message: str, place: str) -> Unavailable | None:
    """Give the teaching error for a driver's message about the host, or None when it is about something else."""
    text = message.lower()
    for sign, code, what, why, fix in _SIGNS:
        if sign in text:
            return Unavailable(code, f"{place}: {what}", why=why or message, fix=fix)
    return None


_SIGNS = (
    ("file is not a database", "not_a_database", "this file is not a database",
     "its first bytes are not those of SQLite 3", "give another path; Lodger makes the file when it is absent"),
    ("malformed", "database_damaged", "the database file is damaged",
     "", "restore a backup, or salvage what is left with: sqlite3 FILE .recover"),
    ("unable to open database file", "database_unreadable", "the database file cannot be opened",
     "the folder is missing, or this user may not read or write it",
     "make the folder, or give its owner's rights to the user Lodger runs as"),
    ("readonly database", "database_read_only", "the database may only be read",
     "the file, its folder or its file system is read-only for this user; SQLite also writes two files beside it",
     "make the file and its folder writable, or give a path elsewhere"),
    ("disk is full", "disk_full", "the disk is full",
     "the transaction was rolled back, nothing is half written", "free some space; the engine goes on by itself"),
    ("disk i/o error", "disk_error", "the disk refused to read or write",
     "", "look at the kernel's log; a network file system cannot hold a ledger in WAL mode"),
    ("database is locked", "database_busy", "another process kept the write lock too long",
     f"waited {BUSY_TIMEOUT_MS} ms", "end what holds a transaction open on this file"),
)  # fmt: skip

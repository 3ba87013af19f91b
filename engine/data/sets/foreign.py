"""A platform's database other than the ledger's: where exposed tables are that Lodger reads, and writes by receipt.

A transaction cannot span two databases, so what a run changes there is applied by seal, apply and settle
(:mod:`lodger.engine.effects.foreign_commit`). For that the database holds one table of Lodger's, ``lodger_receipts``; without it
everything in it may only be read.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from lodger.engine.core.errors import InputError
from lodger.engine.data.sets.reads import ThreadReads
from lodger.engine.data.values.stored import DIALECTS, SQLITE
from lodger.engine.store.connection import postgresql as postgres
from lodger.engine.store.schema.feeds import changes_table, forgotten_table

T = TypeVar("T")
#: Of tables that Lodger has in a platform's own database; no migrations, each is made once and read by every version.
outside = sa.MetaData()

#: That a step of an action was applied here, or never will be. One row per step, made in the transaction of its effects.
receipts = sa.Table(
    "lodger_receipts",
    outside,
    sa.Column("action_id", sa.String(36), primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("verdict", sa.String(16), nullable=False),
    sa.Column("detail", sa.Text),
    sa.Column("made_us", sa.BigInteger, nullable=False),
)

changes_table(outside)
forgotten_table(outside)

#: A transaction here may wait so long for a row that somebody holds, and any statement may take so long.
_PATIENCE = "SET LOCAL lock_timeout = 5000; SET LOCAL statement_timeout = 30000; SET LOCAL timezone = 'UTC'; SET LOCAL jit = off"
_CALM = "SET LOCAL timezone = 'UTC'; SET LOCAL jit = off"


class ForeignDatabase:
    """One database of the platform's. Made by :meth:`lodger.engine.data.sets.datasets.Datasets.attach`.

    Args:
        source: an address, or an engine of the platform's own, which is used and never closed.
        elapsed_s: a clock that never steps; it bounds questions.

    Raises:
        InputError: database_url; it is neither SQLite nor PostgreSQL.
    """

    def __init__(self, source: str | URL | Engine, *, elapsed_s: Callable[[], float]) -> None:
        self._own = not isinstance(source, Engine)
        self.engine = source if isinstance(source, Engine) else _opened(source)
        if self.engine.dialect.name not in DIALECTS:
            raise InputError(
                "database_url",
                f"scripts cannot be given tables of {self.engine.dialect.name}",
                why="the filter language is proved to mean the same on SQLite and PostgreSQL only",
                fix="expose tables of one of these",
            )
        self._elapsed_s = elapsed_s
        self._reads: ThreadReads | None = None
        self._receipts = False
        self._lock = Lock()

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self.engine.dialect.name

    @property
    def place(self) -> str:
        """The address, for people: without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give one consistent snapshot; nothing may be written in it."""
        with self.engine.connect() as connection:
            if self.dialect != SQLITE:
                connection = connection.execution_options(**postgres.READ)
            with connection.begin():
                _begin(connection, "BEGIN DEFERRED", _CALM)
                yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give one transaction that may write; commits at the end, rolls back on any exception."""
        with self.engine.connect() as connection:
            if self.dialect != SQLITE:
                # Under REPEATABLE READ a row that somebody changed meanwhile could not be locked, only failed on.
                connection = connection.execution_options(isolation_level="READ COMMITTED")
            with connection.begin():
                _begin(connection, "BEGIN IMMEDIATE", _PATIENCE)
                yield connection

    async def ask(self, work: Callable[[Connection], T]) -> T:
        """Answer a question in a thread, bounded in time. Satisfies :class:`lodger.engine.capabilities.session.Reads`."""
        with self._lock:
            if self._reads is None:
                self._reads = ThreadReads(self, elapsed_s=self._elapsed_s)
        return await self._reads(work)

    def receives(self, connection: Connection) -> bool:
        """Whether Lodger's tables are there, so that what is in this database may be written and its changes be read."""
        if not self._receipts:  # once there, they stay: a commit without them fails and is tried again
            inspector = sa.inspect(connection)
            self._receipts = all(inspector.has_table(table.name) for table in outside.sorted_tables)
        return self._receipts

    def close(self) -> None:
        """End the threads for questions and the connections that are Lodger's own; safe to call twice."""
        with self._lock:
            reads, self._reads = self._reads, None
        if reads is not None:
            reads.close()
        if self._own:
            self.engine.dispose()


def _begin(connection: Connection, sqlite: str, postgresql: str) -> None:
    if connection.dialect.name != SQLITE:
        connection.exec_driver_sql(postgresql)
        return
    raw: Any = connection.connection.driver_connection
    if not raw.in_transaction:
        # Python's driver begins no transaction before the first write, and then one that ignores its busy timeout.
        connection.exec_driver_sql(sqlite)


def _opened(source: str | URL) -> Engine:
    try:
        url = (
            make_url(source)
            if not isinstance(source, str) or "://" in source
            else URL.create("sqlite", database=source)
        )
        if url.get_backend_name() == "postgresql":
            if url.drivername in {"postgresql", "postgres"}:
                url = url.set(drivername=postgres.DRIVER)
            if url.drivername == postgres.DRIVER:
                return postgres.opened(url)
        engine = sa.create_engine(url)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise InputError(
            "database_url",
            "this names no database that Lodger can open",
            why=str(error),
            fix="give an address or an Engine",
        ) from error
    if url.get_backend_name() == SQLITE:
        event.listen(engine, "connect", lambda raw, _record: raw.execute("PRAGMA foreign_keys = ON"))
    return engine


def state_of(error: DBAPIError) -> str | None:
    """Give the SQLSTATE that a driver says, None when it says none."""
    found = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return str(found) if found else None

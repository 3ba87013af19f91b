"""The driver of SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.exc import DataError, DBAPIError, OperationalError
from sqlalchemy.sql.compiler import IdentifierPreparer
from sqlalchemy.types import LargeBinary

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.refusal import CallRefused
from lodger.engine.store.drivers import Driver, features
from lodger.engine.store.drivers.sql_files import clauses_of
from lodger.engine.store.drivers.sqlite import backup, connections, guards, triggers
from lodger.engine.store.drivers.sqlite.json_path import SqliteJsonPath
from lodger.engine.store.drivers.sqlite.rows import JsonList, Over

if TYPE_CHECKING:
    from lodger.engine.store.drivers.postgresql.row_security import RowSecurity

#: Number of decimal digits that a double represents exactly.
EXACT_DIGITS = 15
#: Parsed statements that a connection keeps. A statement on many rows has a text for each number of rows, and parsing one takes as long as
#: executing it for fifty rows; Python's default is 128.
_CACHED_STATEMENTS = 512
#: Virtual machine steps of SQLite between two checks of the clock.
_STEPS = 1000
_LOW = 0xFFFFFFFF
#: Enough digits that no decimal is rounded.
_WHOLE = Context(prec=160)
#: Messages of SQLite for a statement beyond its limits.
_TOO_COMPLEX = (
    "Expression tree is too large",
    "too many SQL variables",
    "parser stack overflow",
    "LIKE or GLOB pattern too complex",
)
_SQL = clauses_of(__file__)
#: Levels of PRAGMA synchronous; FULL survives a power failure.
_SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}
_FULL = 2


class _HintedCompiler(SQLiteCompiler):
    """Writes the hints of a query, INDEXED BY, which SQLAlchemy leaves out for SQLite."""

    def get_from_hint_text(self, table: Any, text: Any) -> Any:
        return text


class SqliteDriver(Driver):
    """SQLite, as the ledger's database and as the platform's."""

    name: ClassVar[str] = "sqlite"
    backup_begins: ClassVar[bytes] = b"SQLite format 3\0"
    sql: ClassVar[Mapping[str, sa.TextClause]] = _SQL
    read_options: ClassVar[Mapping[str, Any]] = connections.READ
    #: Of a dialect without parameters.
    identifiers: ClassVar[IdentifierPreparer] = sqlite.dialect(paramstyle="named").identifier_preparer
    transaction_number_sql: ClassVar[str] = "0"
    decimal_type: ClassVar[Any] = sa.Float()

    # Connections

    def ledger_url(self, url: sa.URL) -> sa.URL:
        """Return the URL unchanged; refuse a database in memory."""
        if url.database in {None, "", ":memory:"}:
            raise InputError("database_url.memory")
        return url

    def open(self, url: sa.URL, *, synchronous: str, patience_s: float) -> sa.Engine:
        """Return a pool of connections that are set up for the ledger."""
        engine = sa.create_engine(
            url,
            connect_args={"check_same_thread": False, "cached_statements": _CACHED_STATEMENTS},
            pool_size=8,
            max_overflow=8,
            # The connection used last has the pages and statements of the next reader.
            pool_use_lifo=True,
            # Values of rows, some of which are secrets, stay out of the text of errors.
            hide_parameters=True,
            execution_options=self.options,
        )
        engine.dialect.statement_compiler = _HintedCompiler
        sa.event.listen(engine, "connect", lambda raw, _record: connections.prepare(raw, synchronous))
        connections.LedgerFile(engine)
        sa.event.listen(engine, "begin", connections.begin)
        sa.event.listen(engine, "do_execute", connections.close_after_long)
        return engine

    def open_platform(self, url: sa.URL) -> sa.Engine:
        """Return a pool of connections that check foreign keys."""
        engine = sa.create_engine(url, hide_parameters=True, execution_options=self.options)
        sa.event.listen(engine, "do_connect", lambda *_of_event: connections.require_regular(str(url.database)))
        sa.event.listen(engine, "connect", lambda raw, _record: raw.execute("PRAGMA foreign_keys = ON"))
        sa.event.listen(engine, "do_execute", connections.close_after_long)
        return engine

    def has_platform(self, url: sa.URL) -> bool:
        """Whether the file exists: SQLite creates one for a misspelt path."""
        file = url.database
        return not file or file.startswith((":memory:", "file:")) or Path(file).exists()

    def writer(self, pool: sa.Engine) -> features.Writer:
        """Return the transactions of one connection; between processes ``BEGIN IMMEDIATE`` lets one write at a time."""
        return connections.OneWriter(pool)

    def begin_platform(self, connection: sa.Connection, *, write: bool) -> None:
        """Begin a transaction unless the DBAPI has begun one. Raises Unavailable: database_replaced; the next one opens the new file."""
        connections.require_same_file(connection)
        self.require_begun(connection, write=write)

    def require_begun(self, connection: sa.Connection, *, write: bool = True) -> None:
        """Begin a transaction unless the DBAPI has begun one."""
        raw: Any = connection.connection.driver_connection
        if not raw.in_transaction:
            # Python's driver begins a transaction only before an INSERT, UPDATE or DELETE, and that one ignores its busy timeout.
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN DEFERRED")

    def table_statements(self, tables: Sequence[sa.Table]) -> Iterator[str]:
        """Return the triggers of the tables."""
        return guards.statements(tables)

    def explain(self, error: DBAPIError, place: str) -> Unavailable | None:
        """Return the error with a fix for an error of the database that concerns the host, by its message: SQLite's codes are too
        coarse."""
        return connections.explain(str(error.orig), place)

    def is_transaction_lost(self, connection: sa.Connection) -> bool:
        """Return True after ``RAISE(ROLLBACK)``, ``ON CONFLICT ROLLBACK`` and sometimes a full disk."""
        if connection.closed:
            return False
        raw = connection.connection.driver_connection
        return raw is not None and not raw.in_transaction

    def file_watcher(self, writer: connections.OneWriter) -> features.CommitWatcher | None:
        """Return the writer: its connection sees the file's version change."""
        return writer

    def check_settings(self, connection: sa.Connection) -> list[features.Check]:
        """Check the journal, and how often it is synchronized with the disk."""
        journal = str(connection.exec_driver_sql("PRAGMA journal_mode").scalar_one())
        level = int(connection.exec_driver_sql("PRAGMA synchronous").scalar_one())
        why = "readers and the writer wait for each other"
        fix = "put the file on a local disk: a network file system has no WAL"
        wal = features.Check.of("journal mode", journal, why, fix, ok=journal == "wal")
        why = "a power failure can undo the last commits, and their runs are repeated"
        synchronous = features.Check.of(
            "synchronous", _SYNCHRONOUS.get(level, str(level)), why, "set LODGER_SQLITE_SYNCHRONOUS=FULL",
            ok=level >= _FULL, state="warn" if level == _FULL - 1 else "fail",
        )  # fmt: skip
        return [wal, synchronous, connections.check_modes(str(connection.engine.url.database))]

    # Backup

    def is_absent(self, url: sa.URL) -> bool:
        """Return whether the file is missing."""
        return not Path(str(url.database)).exists()

    def read_only_url(self, url: sa.URL) -> sa.URL:
        """Return the URL of a read-only file: in any other mode SQLite would create two more beside it."""
        name = f"file:{quote(str(Path(str(url.database)).absolute()))}"
        return sa.URL.create("sqlite", database=name, query={"mode": "ro", "uri": "true"})

    def backup(self, url: sa.URL, target: Path) -> None:
        """Copy the database's file page by page, from one snapshot."""
        backup.copy(Path(str(url.database)), target)

    def restore(self, url: sa.URL, source: Path) -> None:
        """Copy a backup back to the place of the ledger's file."""
        backup.copy(source, Path(str(url.database)))

    def integrity(self, connection: sa.Connection) -> list[str]:
        """Run SQLite's checks of pages, indexes and foreign keys."""
        return backup.integrity(connection.connection.driver_connection)

    # Statements on many rows

    def insert(self, table: sa.Table) -> Any:
        """Return SQLite's INSERT."""
        return sqlite.insert(table)

    def row_statement(
        self, types: Mapping[str, sa.ColumnElement[Any]], over: Callable[[Any], Any]
    ) -> features.RowStatement:
        """Compile a statement about many rows, which VALUES lists."""
        return Over(tuple(types), over)

    def look_up(self, given: Any, wanted: sa.Select[Any], *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
        """Return a query that joins the tables: SQLite begins with the given rows."""
        return wanted.add_columns(*given.c).select_from(given).where(*conditions)

    def among(self, column: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
        """Return the condition that a column is in a list in JSON: the statement's text does not depend on the number of values."""
        given: sa.Select[Any] = sa.select(sa.literal_column("value")).select_from(
            sa.func.json_each(sa.bindparam(name, type_=JsonList()))
        )
        return column.in_(given)

    # Expressions

    def bytewise_sql(self, text: str) -> str:
        """Return the text with the BINARY collation, which compares code points."""
        return f"({text} COLLATE BINARY)"

    def byte_length(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
        """Return the length of the text as bytes."""
        return sa.func.length(sa.cast(column, LargeBinary))

    def position(self, text: sa.ColumnElement[Any], part: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
        """Return ``instr``."""
        return sa.func.instr(text, part)

    def ascii_lower(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
        """Return ``lower``, which knows ASCII only."""
        return sa.func.lower(text)

    def json_path(self, body: sa.ColumnElement[Any], parts: Sequence[str], tag: str) -> features.JsonPath:
        """Return a path in SQLite's JSON functions."""
        return SqliteJsonPath(body, parts, tag)

    def json_number(self, value: float) -> sa.ColumnElement[Any]:
        """Return a number to compare with one in JSON: unchanged, because integers and doubles compare exactly."""
        return sa.literal(value)

    def decimal_column(self, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
        """Return the column as a double: SQLAlchemy's decimals warn and round through floats."""
        return sa.type_coerce(column, sa.Float())

    def decimal_value(self, value: Decimal) -> Any:
        """Return the nearest double, which is exact up to 15 digits."""
        if len(value.normalize(_WHOLE).as_tuple().digits) > EXACT_DIGITS:
            raise CallRefused(
                "too_many_digits", f"this database stores decimals with at most {EXACT_DIGITS} digits exactly"
            )
        return float(value)

    def exact_sum(self, column: sa.ColumnElement[Any], scale: int | None) -> list[sa.ColumnElement[Any]]:
        """Return two halves: SQLite's sum of integers fails beyond 64 bits."""
        if scale is not None:
            column = sa.cast(sa.func.round(column * 10**scale), sa.Integer())
        return [sa.func.sum(column.op(">>")(32)), sa.func.sum(column.op("&")(_LOW)), sa.func.count(column)]

    # Reads and writes of tenants' rows

    def rows_up_to(
        self,
        connection: sa.Connection,
        statement: sa.Select[Any],
        weighed: Sequence[int],
        max_bytes: int,
        min_rows: int,
    ) -> tuple[list[Any], bool]:
        """Return the first rows up to a size, by stepping through the rows, which SQLite returns one by one."""
        found: list[Any] = []
        weight = 0
        with connection.execute(statement) as rows:
            for row in rows:
                if len(found) >= min_rows and weight >= max_bytes:
                    return found, True
                weight += features.weight_of(row)
                found.append(row)
        return found, False

    @contextmanager
    def time_limit(
        self, connection: sa.Connection, seconds: float, elapsed_s: Callable[[], float], *, scans: bool = False
    ) -> Iterator[None]:
        """Cancel a statement of the block once the time is over: the clock is checked every thousand steps."""
        raw = connection.connection.driver_connection
        assert raw is not None
        end = elapsed_s() + seconds
        raw.set_progress_handler(lambda: elapsed_s() > end, _STEPS)
        try:
            yield
        except OperationalError as error:
            if elapsed_s() > end:
                raise features.StatementTimeout from error
            raise
        finally:
            raw.set_progress_handler(None, 0)

    def query_refusal(self, error: DBAPIError) -> features.QueryRefusal | None:
        """Return why a query was refused, by the error's message."""
        if isinstance(error, OperationalError) and any(sign in str(error.orig) for sign in _TOO_COMPLEX):
            return features.QueryRefusal.TOO_COMPLEX
        return features.QueryRefusal.UNREADABLE if isinstance(error, DataError) else None

    def is_read_only_view(self, error: DBAPIError) -> bool:
        """Whether a write failed because its target is a read-only view, by the error's message."""
        return "because it is a view" in str(error.orig)

    def table_name(self, table: sa.Table) -> str:
        """Return the name of a table."""
        return table.name

    # The change feed

    def begin_attribution(self, connection: sa.Connection, consumer: str | None) -> int | None:
        """Return the number of the last change: triggers of SQLite cannot read settings."""
        last: int | None = connection.scalar(_SQL["last_change"])
        return last

    def end_attribution(self, connection: sa.Connection, since: int | None, consumer: str | None) -> None:
        """Store the consumer in the changes since :meth:`begin_attribution`."""
        connection.execute(_SQL["attribute"], {"consumer": consumer, "last": since})

    def trigger_statements(
        self, watched: features.WatchedTable, security: RowSecurity | None, *, wanted: bool
    ) -> list[str]:
        """Return a trigger for each kind of change."""
        return triggers.statements(self.identifiers, watched, wanted=wanted)


DRIVER = SqliteDriver()

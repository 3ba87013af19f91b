"""Database drivers: everything in which SQLite and PostgreSQL differ. It must never hold a query on an aggregate.

:class:`Driver` declares what a database offers; each sub-package implements it. Code above calls
``driver_of(connection)`` and never checks a database's name. A further database is a further sub-package, and a line in
``_BUILT_IN`` or a call of :func:`register`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from sqlalchemy import Column, Connection, Engine, Select, Table, TextClause, func, true
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import IdentifierPreparer
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.util import LRUCache

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.drivers import features

if TYPE_CHECKING:
    from lodger.engine.store.drivers.postgresql.commits import ServerWatcher
    from lodger.engine.store.drivers.postgresql.row_security import RowSecurity

T = TypeVar("T")
#: Execution option in which an engine stores its driver.
OPTION = "lodger_driver"
#: Characters of a statement above which its compiled form is not kept: a script's filter of 190 conditions takes 15 MB.
LONGEST_KEPT = 4000


class StatementCache(LRUCache[Any, Any]):
    """Compiled statements of a pool, but long ones, which scripts make in any number."""

    def __setitem__(self, key: Any, compiled: Any) -> None:
        if len(str(compiled)) <= LONGEST_KEPT:
            super().__setitem__(key, compiled)


class Driver(ABC):
    """One kind of database: connections, statements with different SQL, and the meaning of its errors. Stateless.

    Attributes:
        name: URL scheme of its addresses.
        aliases: further URL schemes.
        is_remote: a server answers. It may be far away: questions are asked together, even some that may not be needed. All processes
            share its clock, which leases use, and a transaction can notify them (:meth:`notify`, :meth:`notifications`).
        has_row_locks: many transactions write at once and lock rows, and a subquery of FROM may refer to the tables before it; otherwise
            one transaction writes at a time.
        has_zones: a timestamp column can keep its zone.
        read_options: execution options of a read-only transaction on the ledger's own pool.
        identifiers: quotes identifiers in handwritten SQL, without doubling percent signs.
        transaction_number_sql: SQL for the number of the present transaction; a constant where one transaction writes at a time.
        decimal_type: type of bound decimals.
        hot_options: options of its DBAPI's cursor for each statement of the hot path.
        backup_begins: first bytes of a file of :meth:`backup`.
        sql: statements of its ``.sql`` file by name, ``unique_rules`` and ``count_triggers`` among them.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    is_remote: ClassVar[bool] = False
    has_row_locks: ClassVar[bool] = False
    has_zones: ClassVar[bool] = False
    read_options: ClassVar[Mapping[str, Any]]
    identifiers: ClassVar[IdentifierPreparer]
    transaction_number_sql: ClassVar[str]
    decimal_type: ClassVar[Any]
    hot_options: ClassVar[Mapping[str, Any]] = {}
    backup_begins: ClassVar[bytes]
    sql: ClassVar[Mapping[str, TextClause]]

    # Connections

    @property
    def options(self) -> dict[str, Any]:
        """Execution options of a new pool of connections."""
        return {OPTION: self, "compiled_cache": StatementCache(300)}

    @abstractmethod
    def ledger_url(self, url: URL) -> URL:
        """Return the URL that SQLAlchemy opens for this address.

        Raises:
            InputError: database_url: the database cannot hold a ledger.
        """

    @abstractmethod
    def open(self, url: URL, *, synchronous: str, patience_s: float) -> Engine:
        """Return the ledger's connection pool, without opening a connection.

        Args:
            url: result of :meth:`ledger_url`.
            synchronous: durability of a commit on SQLite: FULL survives a power failure, NORMAL only a killed process.
            patience_s: maximum time to wait for an answer of a server.
        """

    @abstractmethod
    def open_platform(self, url: URL) -> Engine:
        """Return a pool for one of the platform's databases."""

    def has_platform(self, url: URL) -> bool:
        """Whether a platform's database exists, as far as can be said without opening it."""
        return True

    def writer(self, pool: Engine) -> features.Writer:
        """Return a function that opens a write transaction on the ledger's pool: one at a time, if the database has one writer."""
        return pool

    def read_together(self, connection: Connection, works: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
        """Run functions that read by one connection; return a function for each that returns its result or raises its error."""
        return list(works)

    @abstractmethod
    def begin_platform(self, connection: Connection, *, write: bool) -> None:
        """Begin a transaction on a pool that may be the platform's own, and bound its waits."""

    def require_begun(self, connection: Connection) -> None:  # noqa: B027 - most begin with any statement
        """Begin a caller's transaction if its database module begins one with some statements only."""

    def platform_options(self, *, write: bool) -> Mapping[str, Any]:
        """Return the execution options of a transaction on a platform's pool, before :meth:`begin_platform`."""
        return {}

    def prepare_upgrade(self, connection: Connection) -> None:  # noqa: B027 - most need nothing
        """Lock the schema, so that one process at a time changes it.

        Raises:
            Unavailable: the database cannot hold a ledger.
        """

    @abstractmethod
    def table_statements(self, tables: Sequence[Table]) -> Iterator[str]:
        """Return the statements that complete new tables of the ledger (:mod:`lodger.engine.store.drivers.guards`)."""

    def allow_scans(self, connection: Connection) -> None:  # noqa: B027 - where they are not avoided
        """Let statements of this transaction read whole tables: those that need most of their rows."""

    @abstractmethod
    def explain(self, error: DBAPIError, place: str) -> Unavailable | None:
        """Return the error for a failure of the host (disk, network, lock), None for any other."""

    @abstractmethod
    def is_transaction_lost(self, connection: Connection) -> bool:
        """Whether the database has ended a transaction that the connection still considers open."""

    def file_watcher(self, writer: Any) -> features.CommitWatcher | None:
        """Return a watcher of a file for commits by other ways than this :meth:`writer`, or None for a server."""
        return None

    def server_watcher(
        self, url: URL, patience_s: float, nodes: Table, heartbeat: Collection[str]
    ) -> ServerWatcher | None:
        """Return a commit watcher that queries a server, or None if there is no server. The caller closes it.

        Args:
            patience_s: maximum time to wait for an answer of the server.
            nodes: the table of nodes.
            heartbeat: columns of it that a heartbeat writes; a transaction that changed nothing else is overlooked.
        """
        return None

    def notify(self, connection: Connection, channel: str) -> None:
        """Notify subscribers of a channel when the transaction commits."""
        raise NotImplementedError

    def notifications(self, url: URL | str, channel: str, patience_s: float) -> Generator[bool]:
        """Connect and listen to a channel; yield some times a second whether there was a notification, and True when it begins.

        Args:
            patience_s: how often the server is asked whether it is still there, and how long it may take to answer, seconds.
        """
        raise NotImplementedError

    def waiting_sessions(self, connection: Connection) -> list[tuple[features.Session, float, tuple[int, ...]]]:
        """Return the waiting sessions of the database, each with its wait in seconds and the process ids that block it."""
        return []

    @abstractmethod
    def check_settings(self, connection: Connection) -> list[features.Check]:
        """Check the settings of the database on which the safety of a commit depends."""

    # Backup

    def is_absent(self, url: URL) -> bool:
        """Whether opening this address would make a new database."""
        return False

    def read_only_url(self, url: URL) -> URL:
        """Return the URL that opens an existing database without writing anything beside it."""
        return url

    @abstractmethod
    def backup(self, url: URL, target: Path) -> None:
        """Write a consistent copy of the database to a new file, while it is used.

        Raises:
            Unavailable: database_damaged, program_missing, backup_failed.
            OSError: the file cannot be written.
        """

    @abstractmethod
    def restore(self, url: URL, source: Path) -> None:
        """Load a file of :meth:`backup` into a database that does not exist (SQLite) or has no ledger (PostgreSQL).

        Raises:
            InputError: file_exists.
            Unavailable: database_damaged, program_missing, backup_failed.
            OSError: the file cannot be read.
        """

    @abstractmethod
    def integrity(self, connection: Connection) -> list[str]:
        """Return the damages that the database finds in itself."""

    def timeline(self, connection: Connection) -> str:
        """Return a text that changes when a standby takes over; empty if the database has none or does not tell."""
        return ""

    # Statements on many rows

    @abstractmethod
    def insert(self, table: Table) -> Any:
        """Return the INSERT that has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""

    @abstractmethod
    def row_statement(
        self, types: Mapping[str, ColumnElement[Any]], over: Callable[[Any], Any]
    ) -> features.RowStatement:
        """Compile a statement about many given rows.

        Args:
            types: names of a row's fields, each with a column of its type.
            over: builds the statement for a table named ``given`` with these columns.
        """

    @abstractmethod
    def look_up(self, given: Any, wanted: Select[Any], *conditions: ColumnElement[bool]) -> Select[Any]:
        """Return the columns of ``given`` and the rows of ``wanted`` that match the conditions, found by key.

        The planner must not be able to choose a scan of the whole table, whatever its statistics are.
        """

    @abstractmethod
    def among(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        """Return the condition that a column's value is in the bound list of this name."""

    def hand_on(self, statement: Select[Any], column: str, name: str) -> Select[Any]:
        """Return the query; where :attr:`has_row_locks` extended so that it keeps the values of a column for :meth:`handed`."""
        return statement

    def handed(self, name: str, kind: Any) -> ColumnElement[Any]:
        """Return the array that :meth:`hand_on` has kept in this transaction: so one query builds on another in one round trip."""
        raise NotImplementedError

    # Expressions

    def execute_text(self, connection: Connection, statement: str) -> None:
        """Run a statement without parameters exactly as written, percent signs included."""
        connection.exec_driver_sql(statement)

    @abstractmethod
    def bytewise_sql(self, text: str) -> str:
        """Return SQL that compares this SQL text by code points, whatever its type or collation."""

    def now_us(self) -> ColumnElement[int]:
        """Return the server's time at the statement, in microseconds since 1970; see :attr:`is_remote`."""
        raise NotImplementedError

    @abstractmethod
    def byte_length(self, column: ColumnElement[Any]) -> ColumnElement[int]:
        """Return the number of bytes of a text."""

    @abstractmethod
    def position(self, text: ColumnElement[Any], part: ColumnElement[Any]) -> ColumnElement[int]:
        """Return the 1-based position of a part in a text; 0 if it does not occur."""

    @abstractmethod
    def ascii_lower(self, text: ColumnElement[Any]) -> ColumnElement[str]:
        """Return a text with the letters A to Z, and no others, in lower case."""

    @abstractmethod
    def json_path(self, body: ColumnElement[Any], parts: Sequence[str], tag: str) -> features.JsonPath:
        """Return the value at a path of a JSON text.

        Args:
            parts: plain names.
            tag: name of the member that marks an object as an instant.
        """

    @abstractmethod
    def json_number(self, value: float) -> ColumnElement[Any]:
        """Return a number as a bound SQL value to compare with a number in JSON."""

    def decimal_column(self, column: Column[Any]) -> ColumnElement[Any]:
        """Return the expression by which a column of decimals is selected and compared."""
        return column

    def decimal_value(self, value: Any) -> Any:
        """Return the bound form of a decimal.

        Raises:
            CallRefused: too_many_digits.
        """
        return value

    def integer_type(self, column: Column[Any]) -> Any:
        """Return the type of bound integers that are compared with a column."""
        return column.type

    def extreme(self, column: ColumnElement[Any], *, is_uuid: bool) -> ColumnElement[Any]:
        """Return a column of UUIDs, or else of booleans, in a form that ``min`` and ``max`` accept."""
        return column

    def exact_sum(self, column: ColumnElement[Any], scale: int | None) -> list[ColumnElement[Any]]:
        """Return the parts of an exact sum: the sum, or its two halves of 32 bits; the count is last.

        Args:
            scale: digits after the decimal point; None for integers.
        """
        return [func.sum(column), func.count(column)]

    # Reads and writes of tenants' rows

    @abstractmethod
    def rows_up_to(
        self, connection: Connection, statement: Select[Any], weighed: Sequence[int], max_bytes: int, min_rows: int
    ) -> tuple[list[Any], bool]:
        """Return the first rows of a statement up to ``max_bytes``, and whether there are more; a row may end with columns of the driver.

        Args:
            weighed: positions of the columns that are counted.
            min_rows: number of rows that are returned whatever their size.
        """

    @abstractmethod
    def time_limit(
        self, connection: Connection, seconds: float, elapsed_s: Callable[[], float], *, scans: bool = False
    ) -> AbstractContextManager[None]:
        """Limit the duration of a block, or let it take a tenth longer at most: a statement beyond that is cancelled.

        Args:
            scans: allow them too, see :meth:`allow_scans`.

        Raises:
            StatementTimeout: the block would take longer; the transaction is to be rolled back.
        """

    @abstractmethod
    def query_refusal(self, error: DBAPIError) -> features.QueryRefusal | None:
        """Return the reason if the query itself caused the error, else None."""

    def is_read_only_view(self, error: DBAPIError) -> bool:
        """Whether a write failed because its target is a read-only view."""
        return False

    @contextmanager
    def short_waits(self, connection: Connection, lock_ms: int, statement_ms: int) -> Iterator[None]:
        """Limit the waits for locks and the statements in a block; restores the previous limits."""
        yield

    def check_constraints(self, connection: Connection) -> None:  # noqa: B027 - where none can be deferred
        """Check deferred constraints now, and defer them again."""

    def take_numbers(self, connection: Connection, table: Table, column: str, many: int) -> list[int] | None:
        """Take keys from the sequence of a column; None if the database generates keys only on insertion."""
        return None

    @abstractmethod
    def table_name(self, table: Table) -> str:
        """Return the name of a table as a value for statements on the database's catalog."""

    def unique_rules(self, connection: Connection, table: Table) -> dict[str, list[str | None]]:
        """Return the columns of each unique constraint or index of a table, by name; None stands for an expression.

        From the catalog, because SQLAlchemy's inspector omits indexes on expressions.
        """
        found: dict[str, list[str | None]] = {}
        for label, column in connection.execute(self.sql["unique_rules"], {"table": self.table_name(table)}):
            found.setdefault(label, []).append(column)
        return found

    def exclusions(self, table: Table) -> list[features.ExclusionRule]:
        """Return the exclusion constraints that a table declares."""
        return []

    def is_loose(self, kind: Any) -> bool:
        """Whether a column's type considers different texts equal, as citext does."""
        return False

    # The change feed

    def is_final(self, transaction: ColumnElement[int]) -> ColumnElement[bool]:
        """Return the condition that no unfinished transaction can have a number up to this one."""
        return true()

    def next_transaction(self, connection: Connection) -> int | None:
        """Return the number of the next transaction; None if transactions have no numbers."""
        return None

    def oldest_writer(self, connection: Connection) -> tuple[int, int] | None:
        """Return process id and start (microseconds since 1970) of the oldest other writing transaction, if visible."""
        return None

    def count_triggers(self, connection: Connection, table: Table, prefix: str) -> int:
        """Return the number of enabled triggers of a table with this name prefix."""
        given = {"table": self.table_name(table), "name": prefix}
        return int(connection.scalar(self.sql["count_triggers"], given) or 0)

    @abstractmethod
    def begin_attribution(self, connection: Connection, consumer: str | None) -> int | None:
        """Attribute changes that triggers write from now on to this consumer; returns the argument for :meth:`end_attribution`."""

    def end_attribution(self, connection: Connection, since: int | None, consumer: str | None) -> None:  # noqa: B027 - only some databases have something to do
        """Attribute the changes since :meth:`begin_attribution`, on databases where triggers cannot."""

    @abstractmethod
    def trigger_statements(
        self, watched: features.WatchedTable, security: RowSecurity | None, *, wanted: bool
    ) -> list[str]:
        """Return the statements that recreate a table's triggers, or only drop them.

        Args:
            security: has the function that they call, where the database needs one.
        """

    def row_security(self, connection: Connection) -> RowSecurity | None:
        """Return role, views and policies that show one tenant's rows, for a connection's user; None where there is no such feature."""
        del connection
        return None


_BUILT_IN = {"sqlite": "lodger.engine.store.drivers.sqlite", "postgresql": "lodger.engine.store.drivers.postgresql"}
_DRIVERS: dict[str, Driver] = {}


def register(driver: Driver) -> None:
    """Register a driver for its URL schemes."""
    for name in (driver.name, *driver.aliases):
        _DRIVERS[name] = driver


def drivers() -> list[Driver]:
    """Return every driver, by name."""
    for name, module in _BUILT_IN.items():
        if name not in _DRIVERS:
            register(import_module(module).DRIVER)
    return [_DRIVERS[name] for name in sorted(_DRIVERS) if _DRIVERS[name].name == name]


def driver_named(name: str) -> Driver:
    """Return the driver with this name or alias; raises LookupError if there is none."""
    if name not in _DRIVERS:
        drivers()
    if name not in _DRIVERS:
        raise LookupError(f"Lodger has no driver for {name}")
    return _DRIVERS[name]


def driver_of(bind: Connection | Engine) -> Driver:
    """Return the driver of a connection or pool, including one created by the platform."""
    found: Driver | None = bind.get_execution_options().get(OPTION)
    return found or driver_named(bind.dialect.name)


class PerDriver(Generic[T]):
    """A statement, or several, built once for each driver on first use."""

    def __init__(self, build: Callable[[Driver], T]) -> None:
        self._build = build
        self._built: dict[Driver, T] = {}

    def of(self, connection: Connection) -> T:
        """Return the statement for the driver of this connection."""
        driver = driver_of(connection)
        if driver not in self._built:
            self._built[driver] = self._build(driver)
        return self._built[driver]

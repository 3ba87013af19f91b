"""Database drivers: everything in which SQLite and PostgreSQL differ. It must never hold a query on an aggregate.

:class:`Driver` says what a database has to offer; each sub-package implements it. Code above asks ``driver_of(connection)``, and
never for a database's name. A further database is a further sub-package, and a line in ``_BUILT_IN`` or a call of :func:`register`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from sqlalchemy import Column, Connection, Engine, Select, Table, func, true
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.elements import ColumnElement

if TYPE_CHECKING:
    from sqlalchemy.sql.compiler import IdentifierPreparer

    from lodger.engine.core.errors import Unavailable
    from lodger.engine.store.stores.features import (
        CommitWatcher,
        ExclusionRule,
        JsonPath,
        QueryRefusal,
        RowQuery,
        RowSecurity,
        RowWriter,
        ServerWatcher,
        Session,
        Subscription,
        WatchedTable,
    )

T = TypeVar("T")
#: Execution option under which an engine names its driver.
OPTION = "lodger_driver"


class Driver(ABC):
    """One kind of database: connections, statements whose SQL differs, and what its refusals mean. Stateless.

    Attributes:
        name: the name in addresses, before ``://``.
        aliases: further such names.
        has_row_locks: many transactions write at once and lock rows; otherwise one transaction writes at a time.
        has_lateral: a subquery of FROM may refer to the tables before it.
        has_clock: the server's clock is shared by all processes, so that leases go by it.
        has_notifications: a transaction can notify other processes (:meth:`notify`, :meth:`subscribe`).
        has_zones: a timestamp column can keep its zone.
        row_security: role, views and policies that show one tenant's rows; None where the database has no such thing.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    has_row_locks: ClassVar[bool] = False
    has_lateral: ClassVar[bool] = False
    has_clock: ClassVar[bool] = False
    has_notifications: ClassVar[bool] = False
    has_zones: ClassVar[bool] = False
    row_security: ClassVar[RowSecurity | None] = None

    # Connections

    @abstractmethod
    def ledger_url(self, url: URL) -> URL:
        """Return the address that SQLAlchemy opens for this one.

        Raises:
            InputError: database_url: a ledger cannot be kept there.
        """

    @abstractmethod
    def open(self, url: URL, *, synchronous: str, patience_s: float) -> Engine:
        """Return the ledger's connection pool; no connection is made yet.

        Args:
            url: as :meth:`ledger_url` returns it.
            synchronous: durability of a commit, see :data:`lodger.engine.store.connection.database.SYNCHRONOUS`.
            patience_s: how long a server may be silent while it owes an answer.
        """

    @abstractmethod
    def open_platform(self, url: URL) -> Engine:
        """Return a pool for a database of the platform's."""

    def writer(self) -> AbstractContextManager[object]:
        """Return what lets one thread of this process write at a time, where the database has one writer."""
        return nullcontext()

    @property
    @abstractmethod
    def read_options(self) -> Mapping[str, Any]:
        """Execution options of a transaction that only reads, on the ledger's own pool."""

    @abstractmethod
    def begin_platform(self, connection: Connection, *, write: bool) -> None:
        """Begin a transaction on a pool that may be the platform's own; bounds its waits."""

    def platform_options(self, *, write: bool) -> Mapping[str, Any]:
        """Execution options of such a transaction."""
        return {}

    def prepare_upgrade(self, connection: Connection) -> None:  # noqa: B027 - most need nothing
        """Let one process at a time change the schema.

        Raises:
            Unavailable: the database cannot hold a ledger.
        """

    @abstractmethod
    def explain(self, error: DBAPIError, place: str) -> Unavailable | None:
        """Return the error for a refusal that concerns the host (disk, network, lock), None for any other."""

    @abstractmethod
    def is_transaction_lost(self, connection: Connection) -> bool:
        """Whether the database has ended the transaction that the connection believes to be in."""

    def file_watcher(self, url: URL) -> CommitWatcher | None:
        """Return what tells of any commit at any time, None where a server has to be asked. The caller closes it."""
        return None

    def server_watcher(self, url: URL, patience_s: float) -> ServerWatcher | None:
        """Return what asks a server whether anything was committed, None where there is no server. The caller closes it."""
        return None

    def notify(self, connection: Connection, channel: str) -> None:
        """Notify subscribers of a channel when the transaction commits."""
        raise NotImplementedError

    def subscribe(self, url: URL | str, channel: str, patience_s: float) -> Subscription:
        """Connect and listen to a channel."""
        raise NotImplementedError

    def waiting_sessions(self, connection: Connection) -> list[tuple[Session, float, tuple[int, ...]]]:
        """Return each session of the database, how long it has waited for a lock in seconds, and the process ids it waits for."""
        return []

    # Statements for many rows

    @abstractmethod
    def insert(self, table: Table) -> Any:  # noqa: ANN401 - the dialects' inserts share no type
        """Return the INSERT that has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""

    @abstractmethod
    def row_writer(
        self, types: Mapping[str, ColumnElement[Any]], each: Callable[[], Any], over: Callable[[Any], Any]
    ) -> RowWriter:
        """Compile a statement that is run for each of many rows.

        Args:
            types: the names of a row, each with a column of its type.
            each: builds the statement for one row, with bound values of these names.
            over: builds it for all rows of a table named ``given`` with these columns.
        """

    @abstractmethod
    def row_query(self, types: Mapping[str, ColumnElement[Any]], over: Callable[[Any], Any]) -> RowQuery:
        """Compile a question about many rows; arguments as for :meth:`row_writer`."""

    @abstractmethod
    def look_up(self, given: Any, wanted: Select[Any], *conditions: ColumnElement[bool]) -> Select[Any]:  # noqa: ANN401 - a construct of SQLAlchemy
        """Return the columns of ``given`` and the rows of ``wanted`` that the conditions tie to it, found by key.

        Databases that plan by statistics must not read a whole table instead, whatever they know of it.
        """

    @abstractmethod
    def among(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        """Return the condition that a column is one of a bound list of this name."""

    def unindexed(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Return a column so that no index is chosen by it."""
        return column

    # Expressions

    @property
    @abstractmethod
    def identifiers(self) -> IdentifierPreparer:
        """Quotes names for SQL that is written by hand; without parameters, so percent signs are not doubled."""

    def execute_text(self, connection: Connection, statement: str) -> None:
        """Run a statement without parameters as it is written, percent signs included."""
        connection.exec_driver_sql(statement)

    @abstractmethod
    def bytewise_sql(self, text: str) -> str:
        """Return SQL that compares this SQL text by its code points, whatever type or collation it has."""

    @abstractmethod
    def transaction_number_sql(self) -> str:
        """Return SQL for the number of the present transaction, the same for all where one writes at a time."""

    def now_us(self) -> ColumnElement[int]:
        """Return the server's time at the statement, microseconds since 1970; see :attr:`has_clock`."""
        raise NotImplementedError

    @abstractmethod
    def byte_length(self, column: ColumnElement[Any]) -> ColumnElement[int]:
        """Return the number of bytes of a text."""

    @abstractmethod
    def position(self, text: ColumnElement[Any], part: ColumnElement[Any]) -> ColumnElement[int]:
        """Return where a part begins in a text, from 1; 0 when it is not in it."""

    @abstractmethod
    def json_path(self, body: ColumnElement[Any], parts: Sequence[str], tag: str) -> JsonPath:
        """Return the value at a path of a JSON text.

        Args:
            parts: plain names.
            tag: the name whose object with a text is an instant.
        """

    @abstractmethod
    def json_number(self, value: float) -> ColumnElement[Any]:
        """Bind a number that is compared with one in JSON."""

    def decimal_column(self, column: Column[Any]) -> ColumnElement[Any]:
        """Return a column of decimals as it is selected and compared."""
        return column

    def decimal_value(self, value: Any) -> Any:  # noqa: ANN401 - a Decimal, or what stands for it
        """Return what is bound for a decimal.

        Raises:
            CallRefused: too_many_digits.
        """
        return value

    @abstractmethod
    def decimal_type(self) -> Any:  # noqa: ANN401 - an SQLAlchemy type
        """Return the type by which decimals are bound."""

    def integer_type(self, column: Column[Any]) -> Any:  # noqa: ANN401 - an SQLAlchemy type
        """Return the type by which whole numbers are bound that are compared with a column."""
        return column.type

    def uuid_extreme(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Return a column of UUIDs as ``min`` and ``max`` take it."""
        return column

    def bool_extreme(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Return a column of booleans as ``min`` and ``max`` take it."""
        return column

    def exact_sum(self, column: ColumnElement[Any], scale: int | None) -> list[ColumnElement[Any]]:
        """Return the parts of an exact sum: the sum, or its two halves of 32 bits; the count is last.

        Args:
            scale: digits after the point of a decimal; None for whole numbers.
        """
        return [func.sum(column), func.count(column)]

    # Reading and writing tenants' rows

    @abstractmethod
    def rows_up_to(
        self, connection: Connection, statement: Select[Any], weighed: Sequence[int], max_bytes: int, min_rows: int
    ) -> tuple[list[Any], bool]:
        """Return the first rows of a statement until they hold ``max_bytes``, and whether there were more.

        Args:
            weighed: places of the columns whose bytes count.
            min_rows: so many rows are returned however large they are.
        """

    @abstractmethod
    def time_limit(
        self, connection: Connection, seconds: float, elapsed_s: Callable[[], float]
    ) -> AbstractContextManager[None]:
        """Bound the statements of a block.

        Raises:
            StatementTimeout: one took longer.
        """

    @abstractmethod
    def query_refusal(self, error: DBAPIError) -> QueryRefusal | None:
        """Return why a question was refused where the question is to blame, else None."""

    def is_read_only_view(self, error: DBAPIError) -> bool:
        """Whether a write was refused because its target is a view that takes none."""
        return False

    @contextmanager
    def short_waits(self, connection: Connection, lock_ms: int, statement_ms: int) -> Iterator[None]:
        """Wait for locks and statements of a block no longer than this; the limits before stand again after it."""
        yield

    def check_constraints(self, connection: Connection) -> None:  # noqa: B027 - where none can be deferred
        """Check deferred constraints now, and defer them again."""

    def take_numbers(self, connection: Connection, table: Table, column: str, many: int) -> list[int] | None:
        """Take keys from the sequence of a column; None when the database makes keys only as it writes rows."""
        return None

    @abstractmethod
    def unique_rules(self, connection: Connection, table: Table) -> dict[str, list[str | None]]:
        """Return the columns of each unique rule that the database has of a table, by name; None for an expression."""

    def exclusions(self, table: Table) -> list[ExclusionRule]:
        """Return the exclusion constraints that a table declares."""
        return []

    def is_loose(self, kind: Any) -> bool:  # noqa: ANN401 - an SQLAlchemy type
        """Whether a column's type says that it takes different texts for the same."""
        return False

    # The feed of changes

    def is_final(self, transaction: ColumnElement[int]) -> ColumnElement[bool]:
        """Return the condition that no transaction under way can have a number up to this one."""
        return true()

    def next_transaction(self, connection: Connection) -> int | None:
        """Return the number of the next transaction; None where they have none."""
        return None

    def oldest_writer(self, connection: Connection) -> tuple[int, int] | None:
        """Return process id and begin (microseconds since 1970) of the oldest other transaction that writes, if it may be known."""
        return None

    @abstractmethod
    def count_triggers(self, connection: Connection, table: Table, prefix: str) -> int:
        """Return the number of enabled triggers of a table by the beginning of their name."""

    @abstractmethod
    def begin_attribution(self, connection: Connection, consumer: str | None) -> int | None:
        """Have changes that triggers write from now on bear this consumer; returns what :meth:`end_attribution` takes."""

    def end_attribution(self, connection: Connection, since: int | None, consumer: str | None) -> None:  # noqa: B027
        """Attribute the changes since :meth:`begin_attribution` where triggers cannot."""

    def trigger_function(self) -> list[str]:
        """Return the statements for what the triggers of all tables share."""
        return []

    @abstractmethod
    def trigger_statements(self, watched: WatchedTable, *, wanted: bool) -> list[str]:
        """Return the statements that make a table's triggers anew, or only drop them."""


_BUILT_IN = {"sqlite": "lodger.engine.store.stores.sqlite", "postgresql": "lodger.engine.store.stores.postgresql"}
_DRIVERS: dict[str, Driver] = {}


def register(driver: Driver) -> None:
    """Let addresses name this driver."""
    for name in (driver.name, *driver.aliases):
        _DRIVERS[name] = driver


def drivers() -> list[Driver]:
    """Return every driver, in the order of their names."""
    for name, module in _BUILT_IN.items():
        if name not in _DRIVERS:
            register(import_module(module).DRIVER)
    return [_DRIVERS[name] for name in sorted(_DRIVERS) if _DRIVERS[name].name == name]


def driver_named(name: str) -> Driver | None:
    """Return the driver of this name or alias, None when there is none."""
    if name not in _DRIVERS and name in _BUILT_IN:
        register(import_module(_BUILT_IN[name]).DRIVER)
    if name not in _DRIVERS:
        drivers()
    return _DRIVERS.get(name)


def driver_of(bind: Connection | Engine) -> Driver:
    """Return the driver of a connection or pool, also of one that the platform made."""
    found: Driver | None = bind.get_execution_options().get(OPTION) or driver_named(bind.dialect.name)
    if found is None:
        raise LookupError(f"no driver for {bind.dialect.name}")
    return found


class PerDriver(Generic[T]):
    """A statement, or several, built once for each driver that it is asked for."""

    def __init__(self, build: Callable[[Driver], T]) -> None:
        self._build = build
        self._built: dict[Driver, T] = {}

    def of(self, connection: Connection) -> T:
        """Return what was built for the driver of this connection."""
        driver = driver_of(connection)
        found = self._built.get(driver)
        if found is None:
            found = self._built[driver] = self._build(driver)
        return found

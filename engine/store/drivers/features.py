"""Types that drivers share with the code above them: watchers, row statements, JSON paths, row security."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Column, Connection, Table, case, false, or_
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.core import strict_json

#: Type ranks of JSON values, in sort order; a missing value is null.
NULL, BOOLEAN, NUMBER, STRING, TIME, OTHER = range(6)

GivenRow = Mapping[str, Any]


def weight_of(cells: Iterable[Any]) -> int:
    """Return the approximate number of bytes of some values."""
    return sum(map(_weight, cells))


def _weight(cell: Any) -> int:
    """Return the approximate number of bytes of a value."""
    if isinstance(cell, str):
        return len(cell) if cell.isascii() else len(cell.encode())
    if isinstance(cell, bytes):
        return len(cell)
    return len(strict_json.dump(cell)) if isinstance(cell, dict | list) else 8


class StatementTimeout(Exception):
    """A statement, or the statements of a block together, exceeded their time limit."""


class QueryRefusal(Enum):
    """Reason why a database refused a script's query."""

    TOO_COMPLEX = auto()
    OUT_OF_RANGE = auto()
    UNREADABLE = auto()
    INCOMPARABLE = auto()


@dataclass(frozen=True, slots=True)
class Session:
    """One session of the server; ``transaction_s`` is the age of its transaction."""

    pid: int
    application: str
    state: str
    transaction_s: float
    query: str


@dataclass(frozen=True, slots=True)
class Check:
    """One checked property of a database or a host.

    Attributes:
        state: ok, warn or fail.
        value: the found value.
        why: the consequence; ``fix``: the remedy. Empty for ok.
    """

    name: str
    state: str
    value: str
    why: str = ""
    fix: str = ""

    @classmethod
    def of(cls, name: str, value: str, why: str, fix: str, *, ok: bool, state: str = "fail") -> Check:
        """Return the check of a property that is ok, or has this state otherwise."""
        return cls(name, "ok", value) if ok else cls(name, state, value, why, fix)


class Writer(Protocol):
    """Opens write transactions."""

    def begin(self) -> AbstractContextManager[Connection]:
        """Open a write transaction; it commits at the end and rolls back on any exception."""


class CommitWatcher(Protocol):
    """Detects commits of others to a file without a transaction."""

    def version(self) -> int:
        """Return a number that changes after each commit of another connection, and whenever the file cannot be read."""


class ServerWatcher(Protocol):
    """Detects commits on a server by querying it. Not thread-safe."""

    def version(self) -> int | None:
        """Return a number that changes after each commit other than a heartbeat; None if the server does not answer."""

    def overlook(self, connection: Connection) -> None:
        """Ignore the commit of this connection's transaction; thread-safe."""

    def close(self) -> None:
        """Close the connection; safe to call twice."""


class RowWriter(Protocol):
    """A statement that is run for each of many rows."""

    def run(self, connection: Connection, rows: Sequence[GivenRow]) -> None:
        """Run the statement for these rows, at least one."""


class RowQuery(Protocol):
    """A query about many rows."""

    def rows(self, connection: Connection, rows: Sequence[GivenRow], params: GivenRow | None = None) -> list[Any]:
        """Return the result rows for any number of rows. ``params``: bound values beside the rows."""


#: Gets whether a value has a type, and the value; gives a condition on it.
HeldCondition = Callable[[ColumnElement[bool], ColumnElement[Any]], ColumnElement[bool]]


class JsonPath(Protocol):
    """The value at a path of a JSON text, by type; each form is NULL for a value of another type.

    No value is cast to a type that it does not have, in whatever order the database evaluates a condition.
    """

    _parts: Sequence[Any]
    _kind: ColumnElement[Any]

    def _kind_at(self, parts: Sequence[Any]) -> ColumnElement[Any]:
        """Return the database's name for the type of the value at a path."""

    def _absent(self) -> ColumnElement[bool]:
        """Return the condition that there is no value, or null."""
        return (self._kind.is_(None)) | (self._kind == "null")

    def _through(self) -> ColumnElement[bool]:
        """Return the condition that the path leads through a list."""
        kinds = (self._kind_at(self._parts[:at]) for at in range(1, len(self._parts)))
        return or_(false(), *(kind.is_not_distinct_from("array") for kind in kinds))

    def missing(self) -> ColumnElement[bool]:
        """Return the condition that the path leads to no value but null, not even through lists."""

    def held(self, rank: int) -> tuple[ColumnElement[bool], ColumnElement[Any]]:
        """Return whether the value has this type rank, and the value."""

    def rank(self) -> ColumnElement[Any]:
        """Return the type rank; that of a list if the path leads through one."""
        return case(
            *([(self._through(), OTHER)] if len(self._parts) > 1 else ()),
            (self._absent(), NULL),
            (self.held(BOOLEAN)[0], BOOLEAN),
            (self.held(NUMBER)[0], NUMBER),
            (self.held(STRING)[0], STRING),
            ((self._kind == "object") & self.held(TIME)[0], TIME),
            else_=OTHER,
        )

    def values(self) -> list[ColumnElement[Any]]:
        """Return the expressions that are compared within the type, one or several; NULL for lists, objects and missing values."""

    def numbers(self) -> ColumnElement[Any]:
        """Return the number as a double, NULL for other values."""

    def some(self, rank: int, holds: HeldCondition) -> ColumnElement[bool]:
        """Return whether a value that the path leads to through lists satisfies a condition; it may be NULL.

        Args:
            holds: receives the result of :meth:`held` for each of them.
        """


class ExclusionRule(NamedTuple):
    """An exclusion constraint; ``equal`` are the columns that it compares by equality."""

    name: str
    columns: tuple[Column[Any], ...]
    equal: frozenset[Column[Any]]


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A table with triggers that write its changes to the feed.

    Attributes:
        source: its name in the feed.
        owner: column of the tenant.
        key: column of the key.
    """

    table: Table
    source: str
    owner: Column[Any]
    key: Column[Any]


@dataclass(frozen=True, slots=True)
class View:
    """The statements that create a view, and the mark that identifies its definition."""

    statements: tuple[str, ...]
    mark: str


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """A view that shows one tenant's rows of a table.

    Attributes:
        home: schema of the table.
        columns: visible columns.
        inserted, updated: writable columns; None if rows may not be inserted, or not be changed at all.
        checked: whether rows are writable, so that the view must refuse rows that it would not show.
    """

    name: str
    table: Table
    home: str
    tenant: Column[Any]
    columns: Sequence[Column[Any]]
    inserted: frozenset[Column[Any]] | None
    updated: frozenset[Column[Any]] | None
    deletable: bool
    checked: bool


class RowSecurity(Protocol):
    """A role without rights, views and policies for one tenant: the second wall around scripts' data, for one database user.

    Attributes:
        role: the role that scripts' statements run as.
        schema: the schema of the views.
    """

    role: str
    schema: str

    def is_member(self, connection: Connection) -> bool:
        """Whether the role exists and the present user may act as it."""

    def is_ungranted(self, connection: Connection) -> bool:
        """Whether the role exists, but the present user may not act as it."""

    def has_privileges(self, connection: Connection, needed: Iterable[tuple[str, str]]) -> bool:
        """Whether the role has all of these privileges, given as table and privilege."""

    def marks(self, connection: Connection) -> dict[str, str | None]:
        """Return the marks of the views that the present user may read, by name."""

    def is_filtered(self, connection: Connection, table: Table) -> bool:
        """Whether the table's own row security applies to this user."""

    def runs_code(self, connection: Connection, table: Table) -> bool:
        """Whether a write to a table runs code with the writer's rights, or may do so."""

    def setting(self, name: str) -> str:
        """Return the name of the database setting that holds the tenant for a dataset of this name, as its tenant column stores it."""

    def assign(self, connection: Connection, settings: Mapping[str, str]) -> None:
        """Assign settings, including the role, until the transaction ends."""

    def leave(self, connection: Connection) -> None:
        """Act as the user of before :meth:`assume` again."""

    def assume(self, connection: Connection) -> None:
        """Act as the scripts' role from now on."""

    def for_user(self, user: str) -> RowSecurity:
        """Return the row security objects of another database user."""

    def home_of(self, connection: Connection, table: Table) -> str:
        """Return the schema in which a table is."""

    def view(self, plan: ViewPlan) -> View:
        """Return the statements that create a view and grant its use to the role."""

    def search_path(self, connection: Connection) -> str:
        """Return the statement that lets another user's session find tables as this connection does."""

    def statements(self, *, ledger: bool) -> list[str]:
        """Return the statements that create the role and the schema.

        Args:
            ledger: whether the database holds Lodger's own tables.
        """

    def own_table(self, name: str) -> str:
        """Return the statement that gives one of Lodger's tables to the user."""

    def trigger_function(self) -> str:
        """Return the statement that creates the function shared by the triggers of all tables."""

    def feed_statements(self) -> list[str]:
        """Return the statements that show the role one tenant's changes, in a database of the platform."""

"""What drivers hand out: the types that cross between a driver and the code above it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Column, Connection, CursorResult, Table
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.core import strict_json

#: The classes of a JSON value, in the order in which they sort; a missing value is null.
NULL, BOOLEAN, NUMBER, STRING, TIME, OTHER = range(6)

GivenRow = Mapping[str, Any]


def weight_of(cells: Iterable[Any]) -> int:
    """Return about how many bytes some values have."""
    return sum(map(_weight, cells))


def _weight(cell: Any) -> int:  # noqa: ANN401 - what a column holds
    if isinstance(cell, str):
        return len(cell) if cell.isascii() else len(cell.encode())
    if isinstance(cell, bytes):
        return len(cell)
    return len(strict_json.dump(cell)) if isinstance(cell, dict | list) else 8


class StatementTimeout(Exception):
    """A statement took longer than its limit."""


class QueryRefusal(Enum):
    """Why a database refused a question of a script."""

    TOO_COMPLEX = auto()
    OUT_OF_RANGE = auto()
    UNREADABLE = auto()
    INCOMPARABLE = auto()


@dataclass(frozen=True, slots=True)
class Session:
    """One session of the server. ``transaction_s``: how long its transaction has been open."""

    pid: int
    application: str
    state: str
    transaction_s: float
    query: str


class CommitWatcher(Protocol):
    """Tells of any commit in a file at any time, without a transaction. Not for two threads at once."""

    def version(self) -> int:
        """Return a number that differs after each commit of another connection, and each time when the file cannot be asked."""
        ...

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        ...


class ServerWatcher(Protocol):
    """Asks a server whether anything was committed. Not for two threads at once."""

    def version(self) -> int | None:
        """Return a number that differs after each commit; None when the server does not answer."""
        ...

    def overlook(self, connection: Connection) -> None:
        """Ignore the commit of the transaction of this connection; called from any thread."""
        ...

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        ...


class Subscription(Protocol):
    """A connection that listens to a channel."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when something arrives."""
        ...

    def probe(self) -> None:
        """Send a question, whose answer :meth:`received` reports."""
        ...

    def received(self) -> tuple[bool, bool]:
        """Read what has arrived; return whether there was a notification, and whether the probe was answered."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class RowWriter(Protocol):
    """A statement that is run for each of many rows."""

    def run(self, connection: Connection, rows: Sequence[GivenRow]) -> None:
        """Run it for these rows, at least one."""
        ...


class RowQuery(Protocol):
    """A question about many rows."""

    def rows(self, connection: Connection, rows: Sequence[GivenRow], params: GivenRow | None = None) -> list[Any]:
        """Return the answers about any number of rows. ``params``: bound values beside the rows."""
        ...

    def run(
        self, connection: Connection, rows: Sequence[GivenRow], params: GivenRow | None = None
    ) -> CursorResult[Any]:
        """Run it over all of these rows at once."""
        ...


class JsonPath(Protocol):
    """The value at a path of a JSON text, by its class; each form is NULL for a value of another class.

    Nothing is ever cast that it cannot be cast to, in whatever order the database evaluates a condition.
    """

    def missing(self) -> ColumnElement[bool]:
        """Whether nothing or null is there."""
        ...

    def held(self, rank: int) -> tuple[ColumnElement[bool], ColumnElement[Any]]:
        """Return whether a value of this class is there, and the value."""
        ...

    def rank(self) -> ColumnElement[Any]:
        """Return the class."""
        ...

    def values(self) -> list[ColumnElement[Any]]:
        """Return what is compared within the class, in one form or several; NULL for lists, objects and missing values."""
        ...

    def numbers(self) -> ColumnElement[Any]:
        """Return the number as a double, NULL for anything else."""
        ...


class ExclusionRule(NamedTuple):
    """An exclusion constraint: ``equal`` are those of its columns that it compares by equality."""

    name: str
    columns: tuple[Column[Any], ...]
    equal: frozenset[Column[Any]]


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A table whose changes triggers write to the feed.

    Attributes:
        source: its name in the feed.
        owner: the column of the tenant.
        key: the column of the key.
    """

    table: Table
    source: str
    owner: Column[Any]
    key: Column[Any]


@dataclass(frozen=True, slots=True)
class View:
    """The statements that make a view, and the mark by which it is known again."""

    statements: tuple[str, ...]
    mark: str


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """A view that shows one tenant's rows of a table.

    Attributes:
        columns: those it shows.
        inserted, updated: those that may be written through it; None when rows may not be inserted, or not be changed at all.
        checked: rows may be written, so none may be written that it would not show.
    """

    name: str
    table: Table
    tenant: Column[Any]
    columns: Sequence[Column[Any]]
    inserted: frozenset[Column[Any]] | None
    updated: frozenset[Column[Any]] | None
    deletable: bool
    checked: bool


class RowSecurity(Protocol):
    """A role without rights, views and policies for one tenant: the second wall around scripts' data.

    Attributes:
        role: the role that scripts' statements run as.
        schema: the schema of the views.
    """

    role: str
    schema: str

    def is_member(self, connection: Connection) -> bool:
        """Whether there is the role and the present user may act as it."""
        ...

    def has_privileges(self, connection: Connection, needed: Iterable[tuple[str, str]]) -> bool:
        """Whether the role has all of these privileges, each a table and a word."""
        ...

    def marks(self, connection: Connection) -> dict[str, str | None]:
        """Return the marks of the views that the present user may read, by name."""
        ...

    def runs_code(self, connection: Connection, table: Table) -> bool:
        """Whether a write of a table runs code with the writer's rights, or it is not known what it runs."""
        ...

    def setting(self, name: str) -> str:
        """Return the setting by which a transaction names its tenant as a set writes it."""
        ...

    def assign(self, connection: Connection, settings: Mapping[str, str]) -> None:
        """Assign settings, the role among them, until the transaction ends."""
        ...

    def assume(self, connection: Connection) -> str:
        """Act as the role from now on; return the one before."""
        ...

    def view(self, plan: ViewPlan) -> View:
        """Return the statements that make a view and grant its use to the role."""
        ...

    def statements(self, *, ledger: bool, user: str | None) -> list[str]:
        """Return the statements that make the role and the schema.

        Args:
            ledger: the database holds Lodger's own tables.
            user: the name Lodger connects under, when another user runs this.
        """
        ...

    def grant_view(self, name: str, user: str) -> str:
        """Return the statement that lets a user use a view."""
        ...

    def grant_table(self, name: str, user: str) -> str:
        """Return the statement that lets a user read and write a table of Lodger's."""
        ...

    def feed_statements(self) -> list[str]:
        """Return the statements that show the role one tenant's changes, in a database of the platform's."""
        ...

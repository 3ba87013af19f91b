"""Types that drivers share with the code above them: row statements, JSON paths, watched tables, views."""

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


class RowStatement(Protocol):
    """A statement about many given rows."""

    def rows(self, connection: Connection, rows: Sequence[GivenRow], params: GivenRow | None = None) -> list[Any]:
        """Execute the statement for these rows, at least one; return the result rows. ``params``: bound values beside the rows."""


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

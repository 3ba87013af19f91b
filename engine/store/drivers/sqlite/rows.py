"""Statements on many rows on SQLite: plain values, up to a hundred rows in one statement.

Binding the values of a row separately cost as much as the row itself. A hundred rows at once cost half of a hundred
statements, and the DBAPI releases the interpreter's lock once instead of a hundred times: another thread may keep it
for five milliseconds each time.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Connection, Text, TypeDecorator, bindparam, column, select
from sqlalchemy import table as named
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.dml import UpdateBase

from lodger.engine.store.drivers.prepared import Prepared, fetch, row_maker

GivenRow = Mapping[str, Any]
_DIALECT = sqlite.dialect(paramstyle="qmark")
#: Maximum number of rows of one statement.
TOGETHER = 100


class JsonList(TypeDecorator[list[Any]]):
    """A list that is bound as JSON."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: list[Any] | None, dialect: object) -> str | None:
        """Return a list as JSON text, in which SQLite gets it."""
        return None if value is None else json.dumps(value)


class Over:
    """A statement as SQLite text over rows in a common table expression named ``given``.

    One row is written without this table, which SQLite would fill first: its values are bound where the statement names the columns.

    Args:
        names: columns of that table.
        over: builds the statement; its other bound values are arguments of :meth:`rows`, or constants. A statement that writes only
            names columns of the table, which it does not join.
    """

    def __init__(self, names: tuple[str, ...], over: Callable[[Any], Any]) -> None:
        self._names, self._over = names, over
        one = select(*(bindparam(name).label(name) for name in names)).selected_columns
        self._one = Prepared(lambda _driver: over(SimpleNamespace(c=one)))
        self._writes = False
        self._before = self._after = ""
        self._positions: list[str] = []
        self._fixed: dict[str, Any] = {}
        self._make: Callable[[Sequence[Any]], Any] = tuple
        self._values: Callable[[GivenRow], Any] = itemgetter(*names) if len(names) > 1 else lambda row: (row[names[0]],)

    def _compile(self) -> None:
        """Compile the statement, but for the number of its rows."""
        statement = self._over(named("given", *(column(name) for name in self._names)))
        compiled = statement.compile(dialect=_DIALECT)
        self._writes = isinstance(statement, UpdateBase)
        self._make = row_maker(statement, _DIALECT)
        self._positions, self._fixed = list(compiled.positiontup or ()), dict(compiled.params)
        quote = _DIALECT.identifier_preparer.quote
        self._after = f") {compiled}"
        self._before = f"WITH given ({', '.join(map(quote, self._names))}) AS (VALUES "

    def rows(self, connection: Connection, rows: Sequence[GivenRow], params: GivenRow | None = None) -> list[Any]:
        """Execute the statement for any number of rows, a hundred at once; return the result rows."""
        if not self._before:
            self._compile()
        if len(rows) == 1 and self._writes:
            return self._one.rows(connection, {**rows[0], **(params or {})})
        others, found = self._fixed | dict(params or {}), list[Any]()
        more, each = [others[name] for name in self._positions], f"({', '.join('?' * len(self._names))})"
        for start in range(0, len(rows), TOGETHER):
            some = rows[start : start + TOGETHER]
            text = f"{self._before}{', '.join([each] * len(some))}{self._after}"
            found += map(self._make, fetch(connection, text, (*chain.from_iterable(map(self._values, some)), *more)))
        return found

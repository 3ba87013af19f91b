"""Statements on many rows on SQLite: plain values, a hundred rows in one statement.

Binding the values of a row separately cost as much as the row itself. A hundred rows at once cost half of a hundred
statements, and the DBAPI releases the interpreter's lock once instead of a hundred times: another thread may keep it
for five milliseconds each time.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Text, TypeDecorator, column
from sqlalchemy import table as named
from sqlalchemy.dialects import sqlite

from lodger.engine.store.drivers.prepared import fetch, row_maker, run_each

GivenRow = Mapping[str, Any]
_DIALECT = sqlite.dialect(paramstyle="qmark")
#: Rows of one statement; the remainder is sent row by row.
TOGETHER = 100
#: Rows of one query: few different texts, which SQLite parses only once.
_SIZES = (1, 8, 64, 512)


class JsonList(TypeDecorator[list[Any]]):
    """A list that is bound as JSON."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: list[Any] | None, dialect: object) -> str | None:
        """Return a list as JSON text, in which SQLite gets it."""
        return None if value is None else json.dumps(value)


class EachRow:
    """A statement as SQLite text that runs with tuples, a hundred rows at once where possible.

    Args:
        each: builds the statement for one row.
        over: builds the statement for a table of rows.
    """

    def __init__(self, each: Callable[[], Any], over: Callable[[Any], Any]) -> None:
        self._each = each
        self._over = over
        self._text = ""
        self._fixed: dict[str, Any] = {}
        self._whole: Over | None = None
        self._values: Callable[[GivenRow], Any] = tuple

    def _prepare(self, row: GivenRow) -> "Over":
        """Compile the statement for rows with the fields of this one."""
        compiled = self._each().compile(dialect=_DIALECT)
        names = list(compiled.positiontup or ())
        # The statement's own bound values, such as a fixed state, are mixed with those of the rows.
        self._fixed = {name: compiled.params[name] for name in names if name not in row}
        self._text = str(compiled)
        self._values = itemgetter(*names) if len(names) > 1 else lambda values: (values[names[0]],)
        self._whole = Over(tuple(name for name in names if name not in self._fixed), self._over)
        return self._whole

    def run(self, connection: Connection, rows: Sequence[GivenRow]) -> None:
        """Run the statement for each of these rows."""
        whole, rest = self._whole or self._prepare(rows[0]), rows
        while len(rest) >= TOGETHER:
            whole.run(connection, rest[:TOGETHER])
            rest = rest[TOGETHER:]
        if rest:
            values, fixed = self._values, self._fixed
            run_each(connection, self._text, [values({**fixed, **row}) for row in rest])


class Over:
    """A statement as SQLite text over rows in a common table expression named ``given``.

    Args:
        names: columns of that table.
        over: builds the statement; its other bound values are arguments of :meth:`run`, or constants.
    """

    def __init__(self, names: tuple[str, ...], over: Callable[[Any], Any]) -> None:
        self._names, self._over = names, over
        self._after = ""
        self._positions: list[str] = []
        self._fixed: dict[str, Any] = {}
        self._texts: dict[int, str] = {}
        self._make: Callable[[Sequence[Any]], Any] = tuple

    def _text(self, number: int) -> str:
        """Return the SQL text of the statement for so many rows."""
        if not self._after:
            given = named("given", *(column(name) for name in self._names))
            statement = self._over(given)
            compiled = statement.compile(dialect=_DIALECT)
            self._make = row_maker(statement, _DIALECT)
            self._positions, self._fixed = list(compiled.positiontup or ()), dict(compiled.params)
            self._after = str(compiled)
        if number not in self._texts:
            quote = _DIALECT.identifier_preparer.quote
            rows = ", ".join([f"({', '.join('?' * len(self._names))})"] * number)
            self._texts[number] = f"WITH given ({', '.join(map(quote, self._names))}) AS (VALUES {rows}) {self._after}"
        return self._texts[number]

    def run(self, connection: Connection, rows: Sequence[GivenRow]) -> None:
        """Run the statement over these rows; each number of rows has its own text."""
        fetch(connection, *self._sent(rows, None))

    def _sent(self, rows: Sequence[GivenRow], params: GivenRow | None) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL text and the parameters for these rows and other bound values."""
        text, values = self._text(len(rows)), self._fixed | dict(params or {})
        if len(self._names) == 1:
            given: list[Any] = [row[self._names[0]] for row in rows]
        else:
            given = list(chain.from_iterable(map(itemgetter(*self._names), rows)))
        return text, (*given, *[values[name] for name in self._positions])

    def rows(self, connection: Connection, rows: Sequence[GivenRow], params: GivenRow | None = None) -> list[Any]:
        """Query any number of rows, some hundred at once; rows of nulls, which match nothing, fill the last batch."""
        found: list[Any] = []
        done = 0
        while done < len(rows):
            size = next((each for each in _SIZES if each >= len(rows) - done), _SIZES[-1])
            some = [*rows[done : done + size]]
            done += size
            some += [dict.fromkeys(self._names)] * (size - len(some))
            text, values = self._sent(some, params)
            found += map(self._make, fetch(connection, text, values))
        return found

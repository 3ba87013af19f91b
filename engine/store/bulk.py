"""Statements for many rows at once: one round trip on PostgreSQL, one statement for a hundred rows on SQLite.

PostgreSQL takes one array per column and makes rows of them (``unnest``), so the statement's text is the same for any number
of rows; sending the rows one after the other, even in a pipeline, took four times as long. The arrays are written here as
PostgreSQL's own text: the driver looks at every element of a list by itself, which cost more than the server's work.
SQLite is given plain values: working out bound values for each row cost as much as the row. A hundred rows at once cost it half
of what a hundred statements do, and the driver lets go of the interpreter's lock once instead of a hundred times: whoever else
computes may keep it for five milliseconds each time.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import ARRAY, Connection, CursorResult, Table, Text, bindparam, cast, column, func, select, true, update
from sqlalchemy import table as named
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.store.records import AnyRow

Row = dict[str, Any]
_SQLITE = sqlite.dialect(paramstyle="qmark")
#: Rows of one statement on SQLite; what is left over is sent row by row.
TOGETHER = 100
#: Rows of one question: few different texts, which SQLite reads once.
_SIZES = (1, 8, 64, 512)


class UpdateMany:
    """An UPDATE of rows by key, each to values of its own.

    Args:
        keys: column by the name it has in a row, which differs from the column's.
        values: columns that are set from the row.
        fixed: columns that are set alike.
        derived: columns that are set from others of the same row.
    """

    def __init__(
        self,
        table: Table,
        keys: dict[str, str],
        values: tuple[str, ...],
        fixed: dict[str, Any] | None = None,
        derived: dict[str, ColumnElement[Any]] | None = None,
    ) -> None:
        self._names = (*keys, *values)
        fixed = (fixed or {}) | (derived or {})

        def over(given: Any) -> Any:  # noqa: ANN401 - rows of one kind or the other
            same = [table.c[name] == given.c[key] for key, name in keys.items()]
            return update(table).where(*same).values({name: given.c[name] for name in values} | fixed)

        own = [table.c[name] == bindparam(key) for key, name in keys.items()]
        each = update(table).where(*own).values({name: bindparam(name) for name in values} | fixed)
        self._each = EachRow(each, over)
        self._all = over(unnested(self._names, tuple(table.c[keys.get(name, name)] for name in self._names)))

    def run(self, connection: Connection, rows: list[Row]) -> None:
        """Update these rows; no key may be among them twice."""
        if rows and connection.dialect.name == "sqlite":
            self._each.run(connection, rows)
        elif rows:
            connection.execute(self._all, columns(self._names, rows))


class EachRow:
    """A statement as SQLite's own text, run with tuples: for many rows a hundred at once.

    Args:
        statement: what is done for one row.
        over: gives what does it for all rows of a table.
    """

    def __init__(self, statement: Any, over: Callable[[Any], Any]) -> None:  # noqa: ANN401 - insert or update
        self._statement = statement
        self._over = over
        self._text = ""
        self._names: list[str] = []
        self._said: dict[str, Any] = {}
        self._whole: Over | None = None

    def _prepare(self, row: Row) -> "Over":
        made = self._statement.compile(dialect=_SQLITE)
        self._names = list(made.positiontup or ())
        # What the statement itself says, such as a fixed value, stands among what the rows say.
        self._said = {name: made.params[name] for name in self._names if name not in row}
        self._text = str(made)
        self._whole = Over(tuple(name for name in self._names if name not in self._said), self._over)
        return self._whole

    def _tuples(self, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        names, said = self._names, self._said
        if said:
            return [tuple(row[name] if name in row else said[name] for name in names) for row in rows]
        if len(names) == 1:
            return [(row[names[0]],) for row in rows]
        return list(map(itemgetter(*names), rows))

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Run it for each of these rows."""
        whole, done = self._whole or self._prepare(rows[0]), 0
        while len(rows) - done >= TOGETHER:
            whole.run(connection, rows[done : done + TOGETHER])
            done += TOGETHER
        if done < len(rows):
            connection.exec_driver_sql(self._text, self._tuples(rows[done:]))


class Over:
    """A statement as SQLite's own text over rows that stand before it, as a table named ``given``.

    Args:
        names: of that table's columns.
        over: gives the statement; what it says beside the rows is said with :meth:`run`, or is its own.
    """

    def __init__(self, names: tuple[str, ...], over: Callable[[Any], Any]) -> None:
        self._names, self._over = names, over
        self._after = ""
        self._asked: list[str] = []
        self._said: dict[str, Any] = {}
        self._texts: dict[int, str] = {}

    def _text(self, number: int) -> str:
        if not self._after:
            made = self._over(named("given", *(column(name) for name in self._names))).compile(dialect=_SQLITE)
            self._asked, self._said = list(made.positiontup or ()), dict(made.params)
            self._after = str(made)
        if number not in self._texts:
            quote = _SQLITE.identifier_preparer.quote
            rows = ", ".join([f"({', '.join('?' * len(self._names))})"] * number)
            self._texts[number] = f"WITH given ({', '.join(map(quote, self._names))}) AS (VALUES {rows}) {self._after}"
        return self._texts[number]

    def run(self, connection: Connection, rows: Sequence[Row], said: Row | None = None) -> CursorResult[Any]:
        """Run it over these rows; each number of rows has a text of its own."""
        text, values = self._text(len(rows)), self._said | (said or {})
        if len(self._names) == 1:
            given: list[Any] = [row[self._names[0]] for row in rows]
        else:
            given = list(chain.from_iterable(map(itemgetter(*self._names), rows)))
        return connection.exec_driver_sql(text, (*given, *(values[name] for name in self._asked)))

    def rows(self, connection: Connection, rows: Sequence[Row], said: Row | None = None) -> list[AnyRow]:
        """Ask it of any number of rows, some hundred at once; a row of nothing fills what is left, and matches nothing."""
        found: list[AnyRow] = []
        done = 0
        while done < len(rows):
            size = next((each for each in _SIZES if each >= len(rows) - done), _SIZES[-1])
            some = [*rows[done : done + size]]
            done += size
            some += [dict.fromkeys(self._names)] * (size - len(some))
            found += self.run(connection, some, said).all()
        return found


def _inserted(table: Table, names: tuple[str, ...], ending: Callable[[Any], Any]) -> EachRow:
    def over(given: Any) -> Any:  # noqa: ANN401 - rows
        # Without a condition SQLite would take ON CONFLICT for the beginning of a join's.
        every = select(*(given.c[name] for name in names)).where(true())
        return ending(sqlite.insert(table).from_select(list(names), every))

    return EachRow(ending(sqlite.insert(table).values({name: bindparam(name) for name in names})), over)


def insert_many(connection: Connection, table: Table, rows: list[Row], *, absent: bool = False) -> None:
    """Insert rows, all with the same columns; with ``absent`` those whose unique keys are free."""
    if not rows:
        return
    # What none of them has is the column's default; most actions have neither params nor steps nor a reason.
    first = rows[0]
    names = tuple(name for name in first if first[name] is not None or any(row[name] is not None for row in rows))
    if connection.dialect.name == "sqlite":
        _insertion(table, names, absent).run(connection, rows)
    else:
        connection.execute(_insertion_of(table, names, absent), columns(names, rows))


@cache
def _insertion(table: Table, names: tuple[str, ...], absent: bool) -> EachRow:
    return _inserted(table, names, lambda made: made.on_conflict_do_nothing() if absent else made)


@cache
def _insertion_of(table: Table, names: tuple[str, ...], absent: bool) -> Any:  # noqa: ANN401 - the dialects' inserts share no type
    given = unnested(names, tuple(table.c[name] for name in names))
    made = postgresql.insert(table).from_select(list(names), select(*(given.c[name] for name in names)))
    return made.on_conflict_do_nothing() if absent else made


def add_many(connection: Connection, table: Table, keys: tuple[str, ...], rows: list[Row]) -> None:
    """Insert rows of whole numbers, or add them to those that are there under the same keys."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name == "sqlite":
        _addition(table, keys, names).run(connection, rows)
    else:
        connection.execute(_addition_of(table, keys, names), columns(names, rows))


@cache
def _addition(table: Table, keys: tuple[str, ...], names: tuple[str, ...]) -> EachRow:
    def adding(made: Any) -> Any:  # noqa: ANN401 - a dialect's insert
        more = {name: table.c[name] + made.excluded[name] for name in names if name not in keys}
        return made.on_conflict_do_update(index_elements=list(keys), set_=more)

    return _inserted(table, names, adding)


@cache
def _addition_of(table: Table, keys: tuple[str, ...], names: tuple[str, ...]) -> Any:  # noqa: ANN401 - the dialects' inserts share no type
    given = unnested(names, tuple(table.c[name] for name in names))
    made = postgresql.insert(table).from_select(list(names), select(*(given.c[name] for name in names)))
    more = {name: table.c[name] + made.excluded[name] for name in names if name not in keys}
    return made.on_conflict_do_update(index_elements=list(keys), set_=more)


def unnested(names: Sequence[str], typed: Sequence[ColumnElement[Any]]) -> Any:  # noqa: ANN401 - a table-valued alias
    """Give rows made of one array per name, each as :func:`columns` writes it; PostgreSQL only."""
    arrays = [cast(bindparam(name, type_=Text), ARRAY(each.type)) for name, each in zip(names, typed, strict=True)]
    made = [column(name, each.type) for name, each in zip(names, typed, strict=True)]
    return func.unnest(*arrays).table_valued(*made, name="given").render_derived()


def columns(names: Sequence[str], rows: Sequence[Row]) -> dict[str, str]:
    """Give each column of these rows as the text of an array: numbers, text, bytes and None."""
    return {name: _array([row[name] for row in rows]) for name in names}


def _array(values: list[Any]) -> str:
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:  # noqa: ANN401 - int, float, str, bytes or None
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    raise TypeError(f"{type(value).__name__} in an array of numbers, text and bytes")

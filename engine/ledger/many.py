"""Statements for many rows at once: one round trip on PostgreSQL, prepared once and run row by row on SQLite.

PostgreSQL takes one array per column and makes rows of them (``unnest``), so the statement's text is the same for any number
of rows; sending the rows one after the other, even in a pipeline, took four times as long. The arrays are written here as
PostgreSQL's own text: the driver looks at every element of a list by itself, which cost more than the server's work.
SQLite is given plain tuples: working out bound values for each row cost as much as the row.
"""

from collections.abc import Sequence
from functools import cache
from operator import itemgetter
from typing import Any

from sqlalchemy import ARRAY, Connection, Table, Text, bindparam, cast, column, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import ColumnElement

Row = dict[str, Any]
_SQLITE = sqlite.dialect(paramstyle="qmark")


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
        own = [table.c[name] == bindparam(key) for key, name in keys.items()]
        self._each = EachRow(update(table).where(*own).values({name: bindparam(name) for name in values} | fixed))
        given = unnested(self._names, tuple(table.c[keys.get(name, name)] for name in self._names))
        same = [table.c[name] == given.c[key] for key, name in keys.items()]
        self._all = update(table).where(*same).values({name: given.c[name] for name in values} | fixed)

    def run(self, connection: Connection, rows: list[Row]) -> None:
        """Update these rows; no key may be among them twice."""
        if rows and connection.dialect.name == "sqlite":
            self._each.run(connection, rows)
        elif rows:
            connection.execute(self._all, columns(self._names, rows))


class EachRow:
    """A statement as SQLite's own text, run with tuples: for many rows, or asked again and again."""

    def __init__(self, statement: Any) -> None:  # noqa: ANN401 - insert, update, select
        self._statement = statement
        self._text = ""
        self._names: list[str] = []
        self._said: dict[str, Any] = {}

    def _tuples(self, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        if not self._text:
            made = self._statement.compile(dialect=_SQLITE)
            self._names = list(made.positiontup or ())
            # What the statement itself says, such as a fixed value, stands among what the rows say.
            self._said = {name: made.params[name] for name in self._names if name not in rows[0]}
            self._text = str(made)
        names, said = self._names, self._said
        if said:
            return [tuple(row[name] if name in row else said[name] for name in names) for row in rows]
        if len(names) == 1:
            return [(row[names[0]],) for row in rows]
        return list(map(itemgetter(*names), rows))

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Run it for each of these rows."""
        values = self._tuples(rows)
        connection.exec_driver_sql(self._text, values)

    def rows(self, connection: Connection, values: Row) -> Sequence[Any]:
        """Ask it once."""
        (one,) = self._tuples([values])
        return connection.exec_driver_sql(self._text, one).all()


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
    made = sqlite.insert(table).values({name: bindparam(name) for name in names})
    return EachRow(made.on_conflict_do_nothing() if absent else made)


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
    made = sqlite.insert(table).values({name: bindparam(name) for name in names})
    more = {name: table.c[name] + made.excluded[name] for name in names if name not in keys}
    return EachRow(made.on_conflict_do_update(index_elements=list(keys), set_=more))


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

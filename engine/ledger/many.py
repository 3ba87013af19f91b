"""Statements for many rows at once: one round trip on PostgreSQL, prepared once and run row by row on SQLite.

PostgreSQL takes one array per column and makes rows of them (``unnest``), so the statement's text is the same for any number
of rows; sending the rows one after the other, even in a pipeline, took four times as long.
"""

from functools import cache
from typing import Any

from sqlalchemy import ARRAY, Connection, Table, bindparam, column, func, insert, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.elements import ColumnElement

Row = dict[str, Any]


class UpdateMany:
    """An UPDATE of rows by key, each to values of its own.

    Args:
        keys: column by the name it has in a row, which differs from the column's.
        values: columns that are set from the row.
        fixed: columns that are set alike.
    """

    def __init__(
        self, table: Table, keys: dict[str, str], values: tuple[str, ...], fixed: dict[str, Any] | None = None
    ) -> None:
        self._names = (*keys, *values)
        fixed = fixed or {}
        own = [table.c[name] == bindparam(key) for key, name in keys.items()]
        self._each = update(table).where(*own).values({name: bindparam(name) for name in values} | fixed)
        given = _given(self._names, tuple(table.c[keys.get(name, name)] for name in self._names))
        same = [table.c[name] == given.c[key] for key, name in keys.items()]
        self._all = update(table).where(*same).values({name: given.c[name] for name in values} | fixed)

    def run(self, connection: Connection, rows: list[Row]) -> None:
        """Update these rows; no key may be among them twice."""
        if rows and connection.dialect.name == "sqlite":
            connection.execute(self._each, rows)
        elif rows:
            connection.execute(self._all, _columns(self._names, rows))


def insert_many(connection: Connection, table: Table, rows: list[Row], *, absent: bool = False) -> None:
    """Insert rows, all with the same columns; with ``absent`` those whose unique keys are free."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name == "sqlite":
        connection.execute(_insertion(table, absent), rows)
    else:
        connection.execute(_insertion_of(table, names, absent), _columns(names, rows))


@cache
def _insertion(table: Table, absent: bool) -> Any:  # noqa: ANN401 - the dialects' inserts share no type
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table).on_conflict_do_nothing() if absent else insert(table)


@cache
def _insertion_of(table: Table, names: tuple[str, ...], absent: bool) -> Any:  # noqa: ANN401 - as above
    given = _given(names, tuple(table.c[name] for name in names))
    made = postgresql.insert(table).from_select(list(names), select(*(given.c[name] for name in names)))
    return made.on_conflict_do_nothing() if absent else made


def _given(names: tuple[str, ...], typed: tuple[ColumnElement[Any], ...]) -> Any:  # noqa: ANN401 - a table-valued alias
    arrays = [bindparam(name, type_=ARRAY(each.type)) for name, each in zip(names, typed, strict=True)]
    columns = [column(name, each.type) for name, each in zip(names, typed, strict=True)]
    return func.unnest(*arrays).table_valued(*columns, name="given").render_derived()


def _columns(names: tuple[str, ...], rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in names}

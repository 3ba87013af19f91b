"""Statements on many rows on PostgreSQL: one array for each column, converted to rows by ``unnest``.

The statement's text is the same for any number of rows; sending the rows one by one, even in a pipeline, took four
times as long. The arrays are encoded here as PostgreSQL's text format, because psycopg inspects every element of a
list, which cost more than the server's work.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, Connection, Text, TypeDecorator, bindparam, cast, column, func, select
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.store.drivers.prepared import Prepared

GivenRow = Mapping[str, Any]


class Over:
    """A statement over rows in a table named ``given``; one that writes returns no rows."""

    def __init__(self, types: Mapping[str, ColumnElement[Any]], over: Callable[[Any], Any]) -> None:
        self._names = tuple(types)
        self._statement = Prepared(lambda _driver: over(unnested(types)))

    def rows(self, connection: Connection, rows: Sequence[GivenRow], params: GivenRow | None = None) -> list[Any]:
        """Execute the statement for these rows, at least one; return the result rows."""
        given = columns(self._names, rows) | dict(params or {})
        return self._statement.rows(connection, given)


class Array(TypeDecorator[list[Any]]):
    """A list that is bound as the text of an array."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: list[Any] | None, dialect: object) -> str | None:
        """Return the text of the array."""
        return None if value is None else array(value)


def unnested(types: Mapping[str, ColumnElement[Any]]) -> Any:
    """Return a table expression over one array for each name, in the format of :func:`columns`."""
    # In a subquery, so that the estimated number of rows does not depend on the values: a prepared statement is then planned once.
    arrays = [
        select(cast(bindparam(name, type_=Text), ARRAY(each.type))).scalar_subquery() for name, each in types.items()
    ]
    made = [column(name, each.type) for name, each in types.items()]
    return func.unnest(*arrays).table_valued(*made, name="given").render_derived()


def columns(names: Sequence[str], rows: Sequence[GivenRow]) -> dict[str, str]:
    """Return each column of these rows as the text of an array of numbers, text, bytes or None."""
    return {name: array([row[name] for row in rows]) for name in names}


def array(values: Sequence[Any]) -> str:
    """Return a list of values as the text of a PostgreSQL array."""
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    """Return a value as the text of an array's element."""
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

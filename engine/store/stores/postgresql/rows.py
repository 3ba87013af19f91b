"""Statements on many rows on PostgreSQL: one JSON text, converted to rows by ``json_to_recordset``.

The statement's text is the same for any number of rows; sending the rows one by one, even in a pipeline, took four
times as long. An array for each column took half as much again for one row, and as long for fifty. Lists are encoded
here as PostgreSQL's text format, because psycopg inspects every element of a list, which cost more than the server's
work.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, Connection, Text, TypeDecorator, bindparam, cast, column, func
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.store.stores.prepared import CompiledOnce

GivenRow = Mapping[str, Any]
_ROWS = "given_rows"


class Over:
    """A statement over rows in a table named ``given``; one that writes returns no rows."""

    def __init__(self, types: Mapping[str, ColumnElement[Any]], over: Callable[[Any], Any]) -> None:
        self._names = tuple(types)
        self._statement = CompiledOnce(over(_table(types)))

    def run(self, connection: Connection, rows: Sequence[GivenRow]) -> None:
        """Run the statement over these rows."""
        self.rows(connection, rows)

    def rows(self, connection: Connection, rows: Sequence[GivenRow], params: GivenRow | None = None) -> list[Any]:
        """Return the result rows for these rows."""
        given = {**(params or {}), _ROWS: json_of(self._names, rows)}
        return self._statement.rows(connection, given) if rows else []


class Array(TypeDecorator[list[str | int]]):
    """A list of text or integers that is bound as the text of an array."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: list[str | int] | None, dialect: object) -> str | None:
        """Return the text of the array."""
        return None if value is None else array(value)


def _table(types: Mapping[str, ColumnElement[Any]]) -> Any:  # noqa: ANN401 - a table-valued alias
    rows = func.json_to_recordset(cast(bindparam(_ROWS, type_=Text), JSON))
    made = [column(name, each.type) for name, each in types.items()]
    return rows.table_valued(*made, name="given").render_derived(with_types=True)


def json_of(names: Sequence[str], rows: Sequence[GivenRow]) -> str:
    """Return these fields of rows of numbers, text, bytes and None as a JSON text.

    Raises:
        TypeError: a value of another type.
    """
    given = [{name: row[name] for name in names} for row in rows]
    # A look at the types alone costs less than one at each value.
    for kind in {type(value) for row in given for value in row.values()}:
        if issubclass(kind, list | tuple | dict):
            raise _wrong(kind)
        if issubclass(kind, float | bool):
            given = [{name: _plain(each) for name, each in row.items()} for row in given]
    return _encode(given)


def _plain(value: Any) -> Any:  # noqa: ANN401 - a row's value
    # JSON has no infinite numbers, and true is no integer for PostgreSQL.
    if isinstance(value, float):
        return repr(value)
    return int(value) if isinstance(value, bool) else value


def _hex(value: object) -> str:
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    raise _wrong(type(value))


def _wrong(kind: type) -> TypeError:
    return TypeError(f"{kind.__name__} in a row of numbers, text and bytes")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_hex).encode


def array(values: Sequence[str | int]) -> str:
    """Return the text of an array."""
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: str | int) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)

"""Rows read up to a number of bytes: a page of large rows ends early instead of filling the node's memory.

Tried and left: a server-side cursor on PostgreSQL, which costs three round trips where there was one. There the statement itself
adds up what its rows weigh, of no more rows than it was limited to; SQLite hands out its rows one by one.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import JSON, Column, Connection, LargeBinary, Select, String, Text, cast, func, or_, select
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.core import strict_json
from lodger.engine.data.sets.dataset import Collection, Dataset
from lodger.engine.data.values.stored import SQLITE

#: What one question reads at once, bytes; a page that a script is given holds less than half of it.
MOST_BYTES = 2 * 1024 * 1024
#: A text column that may hold more letters than this can make a row large.
LONG = 1000
#: So many rows are read however large they are: one to be given, and one to see that there are more.
LEAST = 2
#: The place of a document's body beside its id.
BODY = 1


def wide(rows: Dataset) -> list[int]:
    """Give the places, among the columns that are read of a set, of those that can make a row large."""
    if isinstance(rows, Collection):
        return [BODY]
    return [place for place, item in enumerate(rows.shown) if is_wide(item.column)]


def is_wide(column: Column[Any]) -> bool:
    """Whether one value of a column can be large."""
    if isinstance(column.type, String):
        return column.type.length is None or column.type.length > LONG
    return isinstance(column.type, JSON | LargeBinary)


def taken(connection: Connection, statement: Select[Any], weighed: Sequence[int], most: int) -> tuple[list[Any], bool]:
    """Give the first rows of a statement, until they weigh ``most`` bytes, and whether there were more.

    Args:
        weighed: places of those of its columns that can be large; without any, all rows are given.
    """
    if not weighed:
        return list(connection.execute(statement)), False
    if connection.dialect.name == SQLITE:
        return _stepped(connection, statement, most)
    some = statement.subquery("some")
    columns = list(some.c)
    bytes_ = reduce(add, (func.coalesce(func.octet_length(_plain(columns[place])), 0) for place in weighed))
    weights = select(*columns, bytes_.label("lodger_bytes")).subquery("weights")
    upto = func.sum(weights.c.lodger_bytes).over(rows=(None, 0))
    before, number, of = upto - weights.c.lodger_bytes, func.row_number().over(), func.count().over()
    extra = (before.label("lodger_before"), number.label("lodger_n"), of.label("lodger_of"))
    summed = select(*list(weights.c)[: len(columns)], *extra).subquery("summed")
    kept = or_(summed.c.lodger_n <= LEAST, summed.c.lodger_before < most)
    asked = (*list(summed.c)[: len(columns)], summed.c.lodger_of)
    found = list(connection.execute(select(*asked).where(kept).order_by(summed.c.lodger_n)))
    return [row[:-1] for row in found], bool(found) and found[0][-1] > len(found)


def _plain(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return column if isinstance(column.type, LargeBinary) else cast(column, Text())


def _stepped(connection: Connection, statement: Select[Any], most: int) -> tuple[list[Any], bool]:
    found: list[Any] = []
    weight = 0
    with connection.execute(statement) as rows:
        for row in rows:
            if len(found) >= LEAST and weight >= most:
                return found, True
            weight += weight_of(row)
            found.append(row)
    return found, False


def weight_of(cells: Iterable[Any]) -> int:
    """Give about how many bytes some values have."""
    return sum(map(_weight, cells))


def _weight(cell: Any) -> int:
    if isinstance(cell, str):
        return len(cell) if cell.isascii() else len(cell.encode())
    if isinstance(cell, bytes):
        return len(cell)
    return len(strict_json.dump(cell)) if isinstance(cell, dict | list) else 8

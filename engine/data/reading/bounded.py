"""Reading rows up to a number of bytes: a page of large rows ends early instead of filling the node's memory."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import JSON, Column, Connection, LargeBinary, Select, String

from lodger.engine.data.sets.dataset import Collection, Dataset
from lodger.engine.store.drivers import driver_of

#: What one question reads at once, bytes; a page that a script is given holds less than half of it.
MAX_BYTES = 2 * 1024 * 1024
#: A text column that may hold more letters than this can make a row large.
LONG = 1000
#: So many rows are read however large they are: one to be given, and one to see that there are more.
MIN_ROWS = 2
#: The place of a document's body beside its id.
BODY = 1


def wide(rows: Dataset) -> list[int]:
    """Return the positions of a dataset's columns that can make a row large."""
    if isinstance(rows, Collection):
        return [BODY]
    return [place for place, item in enumerate(rows.shown) if is_wide(item.column)]


def is_wide(column: Column[Any]) -> bool:
    """Whether one value of a column can be large."""
    if isinstance(column.type, String):
        return column.type.length is None or column.type.length > LONG
    return isinstance(column.type, JSON | LargeBinary)


def taken(
    connection: Connection, statement: Select[Any], weighed: Sequence[int], max_bytes: int
) -> tuple[list[Any], bool]:
    """Run a statement; return its first rows, up to ``max_bytes`` bytes, and whether there were more.

    Args:
        weighed: positions of the columns that can be large; without any, all rows are returned.
    """
    if not weighed:
        return list(connection.execute(statement)), False
    return driver_of(connection).rows_up_to(connection, statement, weighed, max_bytes, MIN_ROWS)

"""Keys that PostgreSQL makes, taken from its sequences at the call: a script knows its new row's id before anything is written.

A number that is taken and not used leaves a gap, as it does for everybody who uses sequences.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy import Connection

from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.values.identifiers import preparer
from lodger.engine.data.values.stored import SQLITE

#: Gives so many keys of a set, or None when its database tells them only when a row is written.
Numbers = Callable[[TableDataset, int], Awaitable[list[int] | None]]

_SEQUENCE = sa.text(
    "SELECT pg_get_serial_sequence(:table, :column), attidentity FROM pg_attribute "
    "WHERE attrelid = to_regclass(:table) AND attname = :column"
)
_NEXT = sa.text("SELECT nextval(CAST(:sequence AS regclass)) FROM generate_series(1, :many)")


class Writable(Protocol):
    """A database that hands out transactions that may write."""

    def write(self) -> AbstractContextManager[Connection]:
        """Give one."""
        ...


def taken(database: Writable, rows: TableDataset, many: int) -> list[int] | None:
    """Take keys; None on SQLite, and for a column whose values may not be given (GENERATED ALWAYS) or have no sequence."""
    with database.write() as connection:
        if connection.dialect.name == SQLITE:
            return None
        table = preparer(connection.dialect.name).format_table(rows.origin)
        found = connection.execute(_SEQUENCE, {"table": table, "column": rows.key.column.name}).first()
        if found is None or found[0] is None or found[1] == "a":
            return None
        return list(connection.scalars(_NEXT, {"sequence": found[0], "many": many}))

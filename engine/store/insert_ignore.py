"""INSERT that leaves a row alone which is already there, on either database."""

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from lodger.engine.store.bulk import insert_many

_INSERT: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def insert_absent(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert the rows whose unique keys are free; all rows have the same keys."""
    insert_many(connection, table, rows, absent=True)


def dialect_insert(connection: Connection, table: Table) -> Any:  # noqa: ANN401 - the two dialects share no type
    """Give the dialect's INSERT, for ON CONFLICT DO UPDATE."""
    return _INSERT[connection.dialect.name](table)

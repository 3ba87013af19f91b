"""The dialects' own INSERT, for ON CONFLICT."""

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

_INSERT: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def dialect_insert(connection: Connection, table: Table) -> Any:  # noqa: ANN401 - the two dialects share no type
    """Give the dialect's INSERT, for ON CONFLICT DO UPDATE."""
    return _INSERT[connection.dialect.name](table)

"""Tables of a platform that has no SQLAlchemy, by their names: columns, types and keys are read from the database."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import NoSuchTableError

from lodger.engine.core.errors import InputError


def table_name(source: Any) -> str | None:
    """Return the name of a table, given as a text or as a model of Django; None for anything else."""
    name = source if isinstance(source, str) else getattr(getattr(source, "_meta", None), "db_table", None)
    return name if isinstance(name, str) else None


def reflected(connection: Connection, metadata: sa.MetaData, name: str) -> sa.Table:
    """Return a table as the database describes it.

    Args:
        metadata: the collection of the database's reflected tables, by which they refer to each other.
        name: name of the table, with a schema before a dot if need be.

    Raises:
        InputError: expose_source.
    """
    schema, _, bare = name.rpartition(".")
    try:
        return sa.Table(bare, metadata, schema=schema or None, autoload_with=connection)
    except NoSuchTableError:
        raise InputError("expose_source.absent", name=name) from None

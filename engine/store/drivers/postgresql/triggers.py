"""Triggers on PostgreSQL that write the changes of a table to the feed: one for each kind of statement, for all its rows at once.

Their function has the rights of the user that Lodger connects as, so that writers need no privilege on Lodger's table. ``TRUNCATE`` is not
recorded, because it names no rows.
"""

from typing import Any

from sqlalchemy import Column, Uuid
from sqlalchemy.sql.compiler import IdentifierPreparer

from lodger.engine.store.drivers.features import WatchedTable
from lodger.engine.store.drivers.postgresql.row_security import CHANGES

_VERBS = ("insert", "update", "delete")
_SEEN = {
    "insert": "NEW TABLE AS new_rows",
    "update": "OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "delete": "OLD TABLE AS old_rows",
}


def statements(names: IdentifierPreparer, watched: WatchedTable, schema: str, *, wanted: bool) -> list[str]:
    """Return the statements that recreate a table's triggers, or only drop them.

    Args:
        schema: schema of the function that the triggers call.
    """
    table = names.format_table(watched.table)
    made = [f"DROP TRIGGER IF EXISTS {CHANGES}_{verb} ON {table}" for verb in _VERBS]
    if not wanted:
        return made
    owner, key = watched.owner, watched.key
    given = (watched.source, owner.name, key.name, _cast_type(owner), _cast_type(key))
    arguments = ", ".join("'" + each.replace("'", "''") + "'" for each in given)
    return made + [
        f"CREATE TRIGGER {CHANGES}_{verb} AFTER {verb.upper()} ON {table} REFERENCING {_SEEN[verb]} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {names.quote(schema)}.{CHANGES}({arguments})"
        for verb in _VERBS
    ]


def _cast_type(column: Column[Any]) -> str:
    """Return the type to cast a column to, so that its text has Python's format."""
    return "uuid" if isinstance(column.type, Uuid) else "text"

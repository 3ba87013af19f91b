"""Triggers on SQLite that write the changes of a table to the feed: one for each kind of change of a row."""

from typing import Any

from sqlalchemy import Column, Uuid
from sqlalchemy.sql.compiler import IdentifierPreparer

from lodger.engine.store.drivers.features import WatchedTable

NAME = "lodger_changes"
_VERBS = ("insert", "update", "delete")
_NOW = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"


def statements(names: IdentifierPreparer, watched: WatchedTable, *, wanted: bool) -> list[str]:
    """Return the statements that recreate a table's triggers, or only drop them."""
    named = {verb: names.quote(f"{NAME}_{verb}_{watched.table.name}") for verb in _VERBS}
    made = [f"DROP TRIGGER IF EXISTS {name}" for name in named.values()]
    return made + [_trigger(names, watched, verb, name) for verb, name in named.items()] if wanted else made


def _trigger(names: IdentifierPreparer, watched: WatchedTable, verb: str, name: str) -> str:
    """Return the trigger that records one kind of change of a table."""
    owner, key = names.quote(watched.owner.name), names.quote(watched.key.name)
    source = watched.source.replace("'", "''")

    def record_sql(side: str, kind: str, condition: str = "1") -> str:
        """Return SQL that records one change of a row, ``old`` or ``new``."""
        return (
            'INSERT INTO lodger_changes (source, owner, "key", kind, at_us) '
            f"SELECT '{source}', {_text(watched.owner, f'{side}.{owner}')}, "
            f"{_text(watched.key, f'{side}.{key}')}, '{kind}', {_NOW} WHERE {side}.{owner} IS NOT NULL AND {condition};"
        )

    same = f"(old.{owner} IS new.{owner} AND old.{key} IS new.{key})"
    body = {
        "insert": record_sql("new", "insert"),
        "delete": record_sql("old", "delete"),
        "update": " ".join(
            (
                record_sql("new", "update", same),
                record_sql("old", "delete", f"NOT {same}"),
                record_sql("new", "insert", f"NOT {same}"),
            )
        ),
    }[verb]
    return f"CREATE TRIGGER {name} AFTER {verb.upper()} ON {names.format_table(watched.table)} BEGIN {body} END"


def _text(column: Column[Any], named: str) -> str:
    """Return SQL for the text of a column; UUIDs are stored as their digits."""
    if not isinstance(column.type, Uuid):
        return f"CAST({named} AS TEXT)"
    parts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    digits = " || '-' || ".join(f"substr({named}, {start}, {many})" for start, many in parts)
    return f"lower(iif(length({named}) = 32, {digits}, {named}))"

"""Triggers on PostgreSQL that write the changes of a table to the feed: one for each kind of statement, for all its rows at once.

They run with the rights of their owner, so that writers need no privilege on Lodger's table. ``TRUNCATE`` is not
recorded, because it names no rows.
"""

from typing import Any

from sqlalchemy import Column, Uuid
from sqlalchemy.sql.compiler import IdentifierPreparer

from lodger.engine.store.stores.features import WatchedTable
from lodger.engine.store.stores.postgresql.row_security import SCHEMA

NAME = "lodger_changes"
_VERBS = ("insert", "update", "delete")
_SEEN = {
    "insert": "NEW TABLE AS new_rows",
    "update": "OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "delete": "OLD TABLE AS old_rows",
}


def statements(names: IdentifierPreparer, watched: WatchedTable, *, wanted: bool) -> list[str]:
    """Return the statements that recreate a table's triggers, or only drop them."""
    table = names.format_table(watched.table)
    made = [f"DROP TRIGGER IF EXISTS {NAME}_{verb} ON {table}" for verb in _VERBS]
    if not wanted:
        return made
    owner, key = watched.owner, watched.key
    given = (watched.source, owner.name, key.name, _cast_type(owner), _cast_type(key))
    arguments = ", ".join("'" + each.replace("'", "''") + "'" for each in given)
    return made + [
        f"CREATE TRIGGER {NAME}_{verb} AFTER {verb.upper()} ON {table} REFERENCING {_SEEN[verb]} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.{NAME}({arguments})"
        for verb in _VERBS
    ]


def _cast_type(column: Column[Any]) -> str:
    """Return the type to cast a column to, so that its text has Python's format."""
    return "uuid" if isinstance(column.type, Uuid) else "text"


#: The function that the triggers call. Lodger's table has its schema in its name, whatever the writer's search path is.
FUNCTION = f"""
DO $do$ BEGIN EXECUTE replace($f$
CREATE OR REPLACE FUNCTION {SCHEMA}.{NAME}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    -- The tenant and the key as text, from either side of a change.
    side text := format('SELECT DISTINCT %I::%s::text AS owner, %I::%s::text AS key', TG_ARGV[1], TG_ARGV[3], TG_ARGV[2], TG_ARGV[4]);
    owned text := format('%I IS NOT NULL', TG_ARGV[1]);
    olds text := side || ' FROM old_rows WHERE ' || owned;
    news text := side || ' FROM new_rows WHERE ' || owned;
    command text := 'INSERT INTO @CHANGES@ (source, owner, key, kind, at_us, made_by) '
                    'SELECT $1, owner, key, %L, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $2 FROM (%s) c';
    maker text := NULLIF(current_setting('lodger.made_by', true), '');
BEGIN
    IF TG_OP = 'INSERT' THEN
        EXECUTE format(command, 'insert', news) USING TG_ARGV[0], maker;
    ELSIF TG_OP = 'DELETE' THEN
        EXECUTE format(command, 'delete', olds) USING TG_ARGV[0], maker;
    ELSE
        EXECUTE format(command, 'delete', format('(%s) EXCEPT (%s)', olds, news)) USING TG_ARGV[0], maker;
        EXECUTE format(command, 'insert', format('(%s) EXCEPT (%s)', news, olds)) USING TG_ARGV[0], maker;
        EXECUTE format(command, 'update', format('(%s) INTERSECT (%s)', news, olds)) USING TG_ARGV[0], maker;
    END IF;
    RETURN NULL;
END $body$
$f$, '@CHANGES@', quote_ident(current_schema()) || '.lodger_changes'); END $do$
""".strip()  # noqa: S608 - names are Lodger's own

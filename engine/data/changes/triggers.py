"""Triggers that write down every change of an exposed table, whoever makes it: for ``expose(…, feed="trigger")``.

On PostgreSQL one for each kind of statement, which see all its rows at once: ten thousand rows of one ``UPDATE`` are one
insert. They run with the rights of whoever made them, so that nobody needs any on Lodger's table. On SQLite one for each kind of
change of a row. ``TRUNCATE`` names no rows and is not seen.
"""

from typing import Any

from sqlalchemy import Column, Connection, Dialect, Uuid, text

from lodger.engine.data.changes.feed import source_of
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.sets.views import SCHEMA
from lodger.engine.data.values.identifiers import preparer
from lodger.engine.data.values.stored import SQLITE

NAME = "lodger_changes"
_VERBS = ("insert", "update", "delete")
_NOW = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"

_THERE = {
    SQLITE: text(
        "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = :table AND name LIKE :name || '%'"
    ),
    "postgresql": text(
        "SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass(:table) AND tgname LIKE :name || '%' AND tgenabled <> 'D'"
    ),
}


def stands(connection: Connection, rows: TableDataset) -> bool:
    """Whether a table's triggers are there and at work, so that nobody else is to write down its changes."""
    dialect = connection.dialect
    table = rows.origin.name if dialect.name == SQLITE else preparer(dialect.name).format_table(rows.origin)
    found: int | None = connection.scalar(_THERE[dialect.name], {"table": table, "name": f"{NAME}_"})
    return found == len(_VERBS)


def begin(connection: Connection, consumer: str | None) -> int | None:
    """Say in a transaction who makes the changes that triggers write down; give what :func:`claim` wants."""
    if connection.dialect.name == SQLITE:
        last: int | None = connection.scalar(text("SELECT coalesce(max(seq), 0) FROM lodger_changes"))
        return last
    connection.execute(text("SELECT set_config('lodger.made_by', :consumer, true)"), {"consumer": consumer or ""})
    return None


def claim(connection: Connection, last: int, consumer: str | None) -> None:
    """Say it of what SQLite's triggers have written down since :func:`begin`, which know no settings."""
    connection.execute(
        text("UPDATE lodger_changes SET made_by = :consumer WHERE seq > :last AND made_by IS NULL"),
        {"consumer": consumer, "last": last},
    )


def statements(rows: TableDataset, dialect: Dialect) -> list[str]:
    """Give what makes the triggers of a set's table, or takes them off when it asks for none."""
    names = preparer(dialect.name)
    table, quote = names.format_table(rows.origin), names.quote
    on = "" if dialect.name == SQLITE else f" ON {table}"
    suffix = f"_{rows.origin.name}" if dialect.name == SQLITE else ""
    made = [f"DROP TRIGGER IF EXISTS {quote(f'{NAME}_{verb}{suffix}')}{on}" for verb in _VERBS]
    if rows.feed != "trigger":
        return made
    if dialect.name == SQLITE:
        return made + [_sqlite(rows, verb, table, quote(f"{NAME}_{verb}{suffix}")) for verb in _VERBS]
    owner, key = rows.tenant_column, rows.key.column
    told = (source_of(rows), owner.name, key.name, _spelled(owner), _spelled(key))
    arguments = ", ".join("'" + each.replace("'", "''") + "'" for each in told)
    seen = {
        "insert": "NEW TABLE AS new_rows",
        "update": "OLD TABLE AS old_rows NEW TABLE AS new_rows",
        "delete": "OLD TABLE AS old_rows",
    }
    return made + [
        f"CREATE TRIGGER {NAME}_{verb} AFTER {verb.upper()} ON {table} REFERENCING {seen[verb]} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.{NAME}({arguments})"
        for verb in _VERBS
    ]


def _spelled(column: Column[Any]) -> str:
    """Give the type by way of which PostgreSQL writes a column's text as everybody else does."""
    return "uuid" if isinstance(column.type, Uuid) else "text"


def _text(column: Column[Any], named: str) -> str:
    """Give the text of a column in SQLite, which keeps UUIDs as their digits."""
    if not isinstance(column.type, Uuid):
        return f"CAST({named} AS TEXT)"
    parts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    digits = " || '-' || ".join(f"substr({named}, {start}, {many})" for start, many in parts)
    return f"lower(iif(length({named}) = 32, {digits}, {named}))"


def _sqlite(rows: TableDataset, verb: str, table: str, name: str) -> str:
    quote = preparer(SQLITE).quote
    owner, key = quote(rows.tenant_column.name), quote(rows.key.column.name)
    source = source_of(rows).replace("'", "''")

    def told(side: str, kind: str, condition: str = "1") -> str:
        return (
            'INSERT INTO lodger_changes (source, owner, "key", kind, at_us) '
            f"SELECT '{source}', {_text(rows.tenant_column, f'{side}.{owner}')}, "
            f"{_text(rows.key.column, f'{side}.{key}')}, '{kind}', {_NOW} WHERE {side}.{owner} IS NOT NULL AND {condition};"
        )

    same = f"(old.{owner} IS new.{owner} AND old.{key} IS new.{key})"
    body = {
        "insert": told("new", "insert"),
        "delete": told("old", "delete"),
        "update": " ".join(
            (told("new", "update", same), told("old", "delete", f"NOT {same}"), told("new", "insert", f"NOT {same}"))
        ),
    }[verb]
    return f"CREATE TRIGGER {name} AFTER {verb.upper()} ON {table} BEGIN {body} END"


#: The function that PostgreSQL's triggers call. Lodger's table is named with its schema, whatever the writer's search path.
FUNCTION = f"""
DO $do$ BEGIN EXECUTE replace($f$
CREATE OR REPLACE FUNCTION {SCHEMA}.{NAME}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    -- The tenant and the key as text, from either side of a change.
    side text := format('SELECT DISTINCT %I::%s::text AS owner, %I::%s::text AS key', TG_ARGV[1], TG_ARGV[3], TG_ARGV[2], TG_ARGV[4]);
    whose text := format('%I IS NOT NULL', TG_ARGV[1]);
    olds text := side || ' FROM old_rows WHERE ' || whose;
    news text := side || ' FROM new_rows WHERE ' || whose;
    told text := 'INSERT INTO @CHANGES@ (source, owner, key, kind, at_us, made_by) '
                 'SELECT $1, owner, key, %L, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $2 FROM (%s) c';
    maker text := NULLIF(current_setting('lodger.made_by', true), '');
BEGIN
    IF TG_OP = 'INSERT' THEN
        EXECUTE format(told, 'insert', news) USING TG_ARGV[0], maker;
    ELSIF TG_OP = 'DELETE' THEN
        EXECUTE format(told, 'delete', olds) USING TG_ARGV[0], maker;
    ELSE
        EXECUTE format(told, 'delete', format('(%s) EXCEPT (%s)', olds, news)) USING TG_ARGV[0], maker;
        EXECUTE format(told, 'insert', format('(%s) EXCEPT (%s)', news, olds)) USING TG_ARGV[0], maker;
        EXECUTE format(told, 'update', format('(%s) INTERSECT (%s)', news, olds)) USING TG_ARGV[0], maker;
    END IF;
    RETURN NULL;
END $body$
$f$, '@CHANGES@', quote_ident(current_schema()) || '.lodger_changes'); END $do$
""".strip()  # noqa: S608 - names are Lodger's own

"""The second lock on a platform's tables in PostgreSQL: views in schema ``lodger_data`` that show one tenant's rows.

A view holds the exposed columns, the tenant's, and those that the table's own declarations fill in; its condition is the
tenant that the transaction names, and nothing can be written through it that it would not show. Role ``lodger_script`` may touch
these views and nothing else of the platform's. (Row-level security on the platform's own table would blind the
platform's own role.) Each view carries a mark of its definition, so that one made for an older ``expose()`` is not taken for the
present one.
"""

import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Dialect, Table
from sqlalchemy.dialects import postgresql

from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.values.identifiers import preparer

SCHEMA = "lodger_data"
ROLE = "lodger_script"
_DIALECT: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy's own
_NAMES = preparer(_DIALECT.name)


def twin(rows: TableDataset) -> TableDataset:
    """Give the same set, read and written through its view."""
    table = Table(rows.name, sa.MetaData(), *(_copied(column) for column in _shown(rows)), schema=SCHEMA)
    return replace(
        rows,
        table=table,
        tenant_column=table.c[rows.tenant_column.key],
        key=(fields := {name: replace(item, column=table.c[item.column.key]) for name, item in rows.fields.items()})[
            rows.key.name
        ],
        fields=fields,
    )


def _copied(column: Column[Any]) -> Column[Any]:
    made: Column[Any] = column._copy()
    # A copied enumeration would take the view's schema for its own.
    made.type = column.type
    # What it refers to is not in this metadata; the database's own constraint on the table below holds all the same.
    made.foreign_keys.clear()
    made.constraints.clear()
    return made


def _shown(rows: TableDataset) -> list[Column[Any]]:
    """Give the columns that the view has, in the table's order."""
    wanted = {rows.tenant_column, *(item.column for item in rows.fields.values()), *rows.referred}
    return [column for column in rows.origin.columns if column in wanted or _filled(column)]


def _filled(column: Column[Any]) -> bool:
    return column.default is not None or column.onupdate is not None


def setting(name: str) -> str:
    """Give the name of the setting by which a transaction names its tenant as a set writes it."""
    # Names of settings have no case; names of sets have.
    return f"lodger.of_{name}" if name == name.lower() else f"lodger.of_{name.lower()}_{zlib.crc32(name.encode()):08x}"


@dataclass(frozen=True, slots=True)
class View:
    """What makes a set's view, and how it is known again."""

    name: str
    statements: tuple[str, ...]
    mark: str


def view(rows: TableDataset) -> View:
    """Give the statements that make a set's view and let the role use it."""
    quote = _NAMES.quote
    table, made = _NAMES.format_table(rows.origin), f"{SCHEMA}.{quote(rows.name)}"
    columns = _shown(rows)
    listed = ", ".join(quote(column.name) for column in columns)
    body = f"SELECT {listed} FROM {table} WHERE {_condition(rows)}"  # noqa: S608 - names are quoted
    check = " WITH CASCADED CHECK OPTION" if rows.writable else ""
    grants = [f"GRANT SELECT ON {made} TO {ROLE}"]
    if rows.insertable:
        given = {rows.tenant_column, rows.key.column, *_written(rows)} | {each for each in columns if _filled(each)}
        grants.append(f"GRANT INSERT ({_names(columns, given, quote)}) ON {made} TO {ROLE}")
        grants.append(_SEQUENCES.format(table=table.replace("'", "''")))
    if rows.writable:
        changed = set(_written(rows)) | {each for each in columns if each.onupdate is not None}
        grants.append(f"GRANT UPDATE ({_names(columns, changed, quote)}) ON {made} TO {ROLE}")
    if rows.deletable:
        grants.append(f"GRANT DELETE ON {made} TO {ROLE}")
    definition = f"CREATE VIEW {made} WITH (security_barrier = true) AS {body}{check}"
    mark = "lodger " + hashlib.sha256("\n".join([definition, *grants]).encode()).hexdigest()[:32]
    return View(
        rows.name,
        (
            f"DROP VIEW IF EXISTS {made}",
            definition,
            f"REVOKE ALL ON {made} FROM PUBLIC",
            *grants,
            f"COMMENT ON VIEW {made} IS '{mark}'",
        ),
        mark,
    )


#: A default that counts is worked out with the rights of whoever inserts, whoever the sequence belongs to.
_SEQUENCES = f"""
DO $$ DECLARE found text; BEGIN
    FOR found IN SELECT pg_get_serial_sequence('{{table}}', attname) FROM pg_attribute
        WHERE attrelid = to_regclass('{{table}}') AND attnum > 0 AND NOT attisdropped
        UNION SELECT s.oid::regclass::text FROM pg_attrdef a
        JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid AND d.refclassid = 'pg_class'::regclass
        JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S' WHERE a.adrelid = to_regclass('{{table}}')
    LOOP
        IF found IS NOT NULL THEN EXECUTE 'GRANT USAGE ON SEQUENCE ' || found || ' TO {ROLE}'; END IF;
    END LOOP;
END $$
""".strip()  # noqa: S608 - the table's name is quoted


def _written(rows: TableDataset) -> list[Column[Any]]:
    return [rows.fields[name].column for name in rows.writable]


def _names(columns: Iterable[Column[Any]], wanted: set[Column[Any]], quote: Any) -> str:
    return ", ".join(quote(column.name) for column in columns if column in wanted)


def _condition(rows: TableDataset) -> str:
    column = _NAMES.quote(rows.tenant_column.name)
    # A setting that is absent, or was another transaction's, names nobody.
    tenant = f"NULLIF(current_setting('{setting(rows.name)}', true), '')"
    kind = rows.tenant_column.type
    if isinstance(kind, sa.Enum):
        return f'CAST({column} AS TEXT) COLLATE "C" = {tenant}'
    if isinstance(kind, sa.Uuid):  # kept as such, or as its 32 digits
        return f"{column} = CAST({tenant} AS UUID)" if kind.native_uuid else f"{column} = replace({tenant}, '-', '')"
    if not isinstance(getattr(kind, "impl_instance", kind), sa.String):
        return f"{column} = CAST({tenant} AS {kind.compile(_DIALECT)})"
    return f'{column} = {tenant} AND CAST({column} AS TEXT) COLLATE "C" = {tenant}'


#: Makes the role where it is missing, and lets this user act as it. Roles belong to the whole server.
ROLE_STATEMENT = f"""
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN
        BEGIN
            CREATE ROLE {ROLE} NOLOGIN NOINHERIT;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END IF;
    IF NOT pg_has_role(current_user, '{ROLE}', 'MEMBER') THEN
        GRANT {ROLE} TO CURRENT_USER;
    END IF;
END $$
""".strip()
SCHEMA_STATEMENTS = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"REVOKE ALL ON SCHEMA {SCHEMA} FROM PUBLIC",
    f"GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE}",
)


#: Lets the role use Lodger's own tables for scripts, which row-level security holds to one tenant.
OWN_STATEMENTS = (
    f"DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO {ROLE}', current_schema()); END $$",
    f"GRANT SELECT, INSERT, UPDATE, DELETE ON lodger_kv, lodger_documents, lodger_document_index TO {ROLE}",
    "GRANT SELECT ON lodger_changes, lodger_changes_forgotten, lodger_cursors, lodger_collection_indexes TO " + ROLE,
)


def statements(sets: Iterable[TableDataset], *, ledger: bool, user: str | None = None) -> list[str]:
    """Give all that makes the role, the schema and the views of these sets, in order.

    Args:
        ledger: the database is the ledger's own.
        user: who Lodger connects as, when somebody else runs this.
    """
    made = [ROLE_STATEMENT, *SCHEMA_STATEMENTS, *(OWN_STATEMENTS if ledger else ())]
    named = None if user is None else _NAMES.quote(user)
    if named is not None:
        made += [f"GRANT {ROLE} TO {named}", f"GRANT USAGE ON SCHEMA {SCHEMA} TO {named}"]
    for rows in sets:
        found = view(rows)
        made += found.statements
        if named is not None:
            quoted = _NAMES.quote(rows.name)
            made.append(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {SCHEMA}.{quoted} TO {named}")
    return made

"""The second wall on PostgreSQL: role ``lodger_script``, views in schema ``lodger_data``, and policies, for one tenant each.

A view contains the exposed columns, the tenant's, and those with defaults; its condition is the transaction's tenant,
and it refuses rows that it would not show. The role may use these views and nothing else of the platform. (Row-level
security on the platform's own table would hide its rows from the platform's own role.) Each view has a mark of its
definition, so that a view of an older ``expose()`` is detected.
"""

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Dialect, Table, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.compiler import IdentifierPreparer

from lodger.engine.store.stores.features import View, ViewPlan

SCHEMA = "lodger_data"
ROLE = "lodger_script"
_DIALECT: Dialect = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]  # SQLAlchemy's own
#: Preparers of live engines double every percent sign for DBAPIs with parameters; here it would become part of a name.
NAMES: IdentifierPreparer = _DIALECT.identifier_preparer

_MEMBER = text(
    "SELECT coalesce((SELECT pg_has_role(current_user, oid, 'MEMBER') FROM pg_roles WHERE rolname = :role), false)"
)
_VIEWS = text(
    "SELECT c.relname, obj_description(c.oid, 'pg_class') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = :schema AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')"
)
_TRIGGERED = text(
    "SELECT count(*) FROM pg_class c LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal "
    "LEFT JOIN pg_proc p ON p.oid = t.tgfoid WHERE c.oid = to_regclass(:table) AND (NOT p.prosecdef OR c.relkind NOT IN ('r', 'p'))"
)
_PRIVILEGES = text(
    "SELECT bool_and(has_table_privilege(:role, to_regclass(name), privilege)) "
    "FROM unnest(CAST(:names AS text[]), CAST(:privileges AS text[])) needs (name, privilege)"
)
#: current_setting is evaluated before set_config.
_ASSUME = text("SELECT current_setting('role'), set_config('role', :role, true)")


class PostgresRowSecurity:
    """See :class:`lodger.engine.store.stores.features.RowSecurity`."""

    role = ROLE
    schema = SCHEMA

    def is_member(self, connection: Connection) -> bool:
        """Query the catalog of roles."""
        return bool(connection.scalar(_MEMBER, {"role": ROLE}))

    def has_privileges(self, connection: Connection, needed: Iterable[tuple[str, str]]) -> bool:
        """Check all privileges in one query."""
        pairs = list(needed)
        given = {"role": ROLE, "names": [name for name, _ in pairs], "privileges": [word for _, word in pairs]}
        return bool(connection.scalar(_PRIVILEGES, given))

    def marks(self, connection: Connection) -> dict[str, str | None]:
        """Read the comments of the views."""
        return {row[0]: row[1] for row in connection.execute(_VIEWS, {"schema": SCHEMA})}

    def runs_code(self, connection: Connection, table: Table) -> bool:
        """Look for triggers with the rights of the writer, and for views, which may hide anything."""
        return bool(connection.scalar(_TRIGGERED, {"table": NAMES.format_table(table)}))

    def setting(self, name: str) -> str:
        """Return a distinct name for each set: names of settings are case-insensitive, names of sets are not."""
        lower = name.lower()
        return f"lodger.of_{name}" if name == lower else f"lodger.of_{lower}_{zlib.crc32(name.encode()):08x}"

    def assign(self, connection: Connection, settings: Mapping[str, str]) -> None:
        """Set them for the transaction, which also works behind a pooler."""
        parts = [f"set_config(:n{index}, :v{index}, true)" for index in range(len(settings))]
        given: dict[str, str] = {}
        for index, (name, value) in enumerate(settings.items()):
            given |= {f"n{index}": name, f"v{index}": value}
        connection.execute(text("SELECT " + ", ".join(parts)), given)

    def assume(self, connection: Connection) -> str:
        """Act as the role from now on; return the previous role."""
        return str(connection.scalar(_ASSUME, {"role": ROLE}))

    def view(self, plan: ViewPlan) -> View:
        """Return the statements that recreate a view."""
        table, made = NAMES.format_table(plan.table), f"{SCHEMA}.{NAMES.quote(plan.name)}"
        listed = ", ".join(NAMES.quote(column.name) for column in plan.columns)
        condition = _condition(plan.tenant, self.setting(plan.name))
        body = f"SELECT {listed} FROM {table} WHERE {condition}"  # noqa: S608 - names are quoted
        check = " WITH CASCADED CHECK OPTION" if plan.checked else ""
        grants = [f"GRANT SELECT ON {made} TO {ROLE}"]
        if plan.inserted is not None:
            grants.append(f"GRANT INSERT ({_names(plan, plan.inserted)}) ON {made} TO {ROLE}")
            grants.append(_SEQUENCES.format(table=table.replace("'", "''")))
        if plan.updated is not None:
            grants.append(f"GRANT UPDATE ({_names(plan, plan.updated)}) ON {made} TO {ROLE}")
        if plan.deletable:
            grants.append(f"GRANT DELETE ON {made} TO {ROLE}")
        definition = f"CREATE VIEW {made} WITH (security_barrier = true) AS {body}{check}"
        mark = "lodger " + hashlib.sha256("\n".join([definition, *grants]).encode()).hexdigest()[:32]
        return View(
            (
                f"DROP VIEW IF EXISTS {made}",
                definition,
                f"REVOKE ALL ON {made} FROM PUBLIC",
                *grants,
                f"COMMENT ON VIEW {made} IS '{mark}'",
            ),
            mark,
        )

    def statements(self, *, ledger: bool, user: str | None) -> list[str]:
        """Return the statements that create the role and the schema, and grant access to Lodger's own tables in the ledger."""
        made = [_MAKE_ROLE, *_MAKE_SCHEMA, *(_OWN_TABLES if ledger else ())]
        if user is not None:
            named = NAMES.quote(user)
            made += [f"GRANT {ROLE} TO {named}", f"GRANT USAGE ON SCHEMA {SCHEMA} TO {named}"]
        return made

    def grant_view(self, name: str, user: str) -> str:
        """Return the grant for a view."""
        return f"GRANT SELECT, INSERT, UPDATE, DELETE ON {SCHEMA}.{NAMES.quote(name)} TO {NAMES.quote(user)}"

    def grant_table(self, name: str, user: str) -> str:
        """Return the grant for one of Lodger's tables."""
        return f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {NAMES.quote(user)}"

    def feed_statements(self) -> list[str]:
        """Return the statements that the ledger's database gets by migration: the role reads one tenant's changes."""
        made = [f"GRANT SELECT ON lodger_changes, lodger_changes_forgotten TO {ROLE}"]
        for table in ("lodger_changes", "lodger_changes_forgotten"):
            made += [
                f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
                f"DROP POLICY IF EXISTS lodger_tenant ON {table}",
                f"CREATE POLICY lodger_tenant ON {table} FOR SELECT USING (owner = current_setting('lodger.owner', true))",
                f"DROP POLICY IF EXISTS lodger_engine ON {table}",
                f"CREATE POLICY lodger_engine ON {table} USING (current_user <> '{ROLE}')",
            ]
        return made


def _names(plan: ViewPlan, wanted: frozenset[Column[Any]]) -> str:
    return ", ".join(NAMES.quote(column.name) for column in plan.columns if column in wanted)


def _condition(tenant: Column[Any], setting: str) -> str:
    column = NAMES.quote(tenant.name)
    # A missing setting, or one left by another transaction, matches no tenant.
    value = f"NULLIF(current_setting('{setting}', true), '')"
    kind = tenant.type
    if isinstance(kind, sa.Enum):
        return f'CAST({column} AS TEXT) COLLATE "C" = {value}'
    if isinstance(kind, sa.Uuid):  # stored natively, or as 32 digits
        return f"{column} = CAST({value} AS UUID)" if kind.native_uuid else f"{column} = replace({value}, '-', '')"
    if not isinstance(getattr(kind, "impl_instance", kind), sa.String):
        return f"{column} = CAST({value} AS {kind.compile(_DIALECT)})"
    return f'{column} = {value} AND CAST({column} AS TEXT) COLLATE "C" = {value}'


#: A sequence default is evaluated with the rights of the writer, whoever owns the sequence.
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
#: Creates the role if it is missing, and lets this user act as it. Roles belong to the whole server.
_MAKE_ROLE = f"""
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
_MAKE_SCHEMA = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"REVOKE ALL ON SCHEMA {SCHEMA} FROM PUBLIC",
    f"GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE}",
)
#: Grants the role access to Lodger's own tables for scripts; row-level security restricts it to one tenant.
_OWN_TABLES = (
    f"DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO {ROLE}', current_schema()); END $$",
    f"GRANT SELECT, INSERT, UPDATE, DELETE ON lodger_kv, lodger_documents, lodger_document_index TO {ROLE}",
    "GRANT SELECT ON lodger_changes, lodger_changes_forgotten, lodger_cursors, lodger_collection_indexes TO " + ROLE,
)

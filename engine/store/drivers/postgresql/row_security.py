"""The second wall on PostgreSQL: a role without rights, views in a schema of their own, and policies, for one tenant each.

The role is ``lodger_script_USER``, after the user that Lodger connects as; the schema ``lodger_data``, followed by the name of the
connection's own schema if that is not ``public``. So no user acts as another one's role, and no ledger reads another one's views.
Everything belongs to that user, whoever runs the statements.

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

from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.features import View, ViewPlan
from lodger.engine.store.drivers.sql_files import clauses_of

#: Start of the role's name, which no policy takes for an engine.
ROLE = "lodger_script_"
#: The role of the present user, as SQL. A name has at most 63 bytes.
ROLE_OF_USER = f"CASE WHEN octet_length('{ROLE}' || current_user) > 63 THEN '{ROLE}' || md5(current_user) ELSE '{ROLE}' || current_user END"
_DATA = "lodger_data"
#: The function that triggers call, and the start of their names.
CHANGES = "lodger_changes"
_DIALECT: Dialect = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]  # SQLAlchemy's own
#: Preparers of live engines double every percent sign for DBAPIs with parameters; here it would become part of a name.
NAMES: IdentifierPreparer = _DIALECT.identifier_preparer

#: Since version 16 a member may lack the right to act as the role.
ACT = "CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END"
_SQL = clauses_of(__file__, act=ACT)


class RowSecurity:
    """A role without rights, views and policies for one tenant: the second wall around scripts' data, for one database user.

    Attributes:
        role: the role that scripts' statements run as.
        schema: the schema of the views.
    """

    def __init__(self, user: str, home: str) -> None:
        """Name the objects of a user in a database.

        Args:
            user: the user that Lodger connects as.
            home: schema in which the user's tables are.
        """
        self._user, self._home = user, home
        self.role = _bounded(ROLE, user)
        self.schema = _DATA if home == "public" else _bounded(f"{_DATA}_", home)
        self._quoted = {
            "role": NAMES.quote(self.role), "schema": NAMES.quote(self.schema), "user": NAMES.quote(user),
            "role_text": _literal(self.role), "schema_text": _literal(self.schema), "user_text": _literal(user),
        }  # fmt: skip

    @classmethod
    def of(cls, connection: Connection) -> "RowSecurity":
        """Return the objects of a connection's user and schema."""
        user, home = connection.execute(_SQL["here"]).one()
        return cls(user, home)

    def for_user(self, user: str) -> "RowSecurity":
        """Return the row security objects of another database user."""
        return RowSecurity(user, self._home)

    def is_member(self, connection: Connection) -> bool:
        """Whether the scripts' role exists and the present user may act as it, by the catalog of roles."""
        return bool(connection.scalar(_SQL["member"], {"role": self.role}))

    def is_ungranted(self, connection: Connection) -> bool:
        """Whether the scripts' role exists, but the present user may not act as it."""
        return bool(connection.scalar(_SQL["ungranted"], {"role": self.role}))

    def has_privileges(self, connection: Connection, needed: Iterable[tuple[str, str]]) -> bool:
        """Whether the scripts' role has all of these privileges (table, privilege), asked in one query."""
        pairs = list(needed)
        given = {"role": self.role, "names": [name for name, _ in pairs], "privileges": [word for _, word in pairs]}
        return bool(connection.scalar(_SQL["privileges"], given))

    def marks(self, connection: Connection) -> dict[str, str | None]:
        """Return the marks of the views by name, which are their comments."""
        return {row[0]: row[1] for row in connection.execute(_SQL["views"], {"schema": self.schema})}

    def is_filtered(self, connection: Connection, table: Table) -> bool:
        """Whether row security hides rows of a table from this user: asked of the server, which knows owners, FORCE and BYPASSRLS."""
        return bool(connection.scalar(_SQL["filtered"], {"table": NAMES.format_table(table)}))

    def runs_code(self, connection: Connection, table: Table) -> bool:
        """Whether a write to a table runs the platform's code: triggers with the rights of the writer, or a view, which may hide
        anything."""
        return bool(connection.scalar(_SQL["triggered"], {"table": NAMES.format_table(table)}))

    def setting(self, name: str) -> str:
        """Return a distinct name for each dataset: names of settings are case-insensitive, names of datasets are not."""
        lower = name.lower()
        return f"lodger.of_{name}" if name == lower else f"lodger.of_{lower}_{zlib.crc32(name.encode()):08x}"

    def assign(self, connection: Connection, settings: Mapping[str, str]) -> None:
        """Set these settings for the transaction, which also works behind a pooler."""
        numbers = range(len(settings))
        given: dict[str, str] = {}
        for index, (name, value) in enumerate(settings.items()):
            given |= {f"n{index}": name, f"v{index}": value}
        statement = "SELECT " + ", ".join(f"set_config(%(n{index})s, %(v{index})s, true)" for index in numbers)
        if prepared.send(connection, statement, given, is_awaited=False) is None:
            parts = ", ".join(f"set_config(:n{index}, :v{index}, true)" for index in numbers)
            connection.execute(text(f"SELECT {parts}"), given)

    def assume(self, connection: Connection) -> None:
        """Act as the scripts' role from now on; the statement reads the present role before it sets another."""
        prepared.later(connection, _SQL["assume"].text.format(role="'" + self.role.replace("'", "''") + "'"))

    def leave(self, connection: Connection) -> None:
        """Act as the user of before :meth:`assume` again."""
        prepared.later(connection, _SQL["leave"].text)

    def home_of(self, connection: Connection, table: Table) -> str:
        """Return the schema of a table, found as a statement would find it."""
        return str(connection.scalar(_SQL["home"], {"table": NAMES.format_table(table)}) or table.schema or self._home)

    def view(self, plan: ViewPlan) -> View:
        """Return the statements that recreate a view."""
        table = f"{NAMES.quote(plan.home)}.{NAMES.quote(plan.table.name)}"
        role, made = self._quoted["role"], f"{self._quoted['schema']}.{NAMES.quote(plan.name)}"
        listed = ", ".join(NAMES.quote(column.name) for column in plan.columns)
        condition = _condition(plan.tenant, self.setting(plan.name))
        body = f"SELECT {listed} FROM {table} WHERE {condition}"  # noqa: S608 - names are quoted
        check = " WITH CASCADED CHECK OPTION" if plan.checked else ""
        grants = [f"GRANT SELECT ON {made} TO {role}"]
        if plan.inserted is not None:
            grants.append(f"GRANT INSERT ({_names(plan, plan.inserted)}) ON {made} TO {role}")
            # A sequence default is evaluated with the rights of the writer, whoever owns the sequence.
            grants.append(_SQL["sequences"].text.format(table=table.replace("'", "''"), role=role.replace("'", "''")))
        if plan.updated is not None:
            grants.append(f"GRANT UPDATE ({_names(plan, plan.updated)}) ON {made} TO {role}")
        if plan.deletable:
            grants.append(f"GRANT DELETE ON {made} TO {role}")
        definition = f"CREATE VIEW {made} WITH (security_barrier = true) AS {body}{check}"
        mark = "lodger " + hashlib.sha256("\n".join([definition, *grants]).encode()).hexdigest()[:32]
        return View(
            (
                f"DROP VIEW IF EXISTS {made}",
                definition,
                f"ALTER VIEW {made} OWNER TO {self._quoted['user']}",
                f"REVOKE ALL ON {made} FROM PUBLIC",
                *grants,
                f"COMMENT ON VIEW {made} IS '{mark}'",
            ),
            mark,
        )

    def search_path(self, connection: Connection) -> str:
        """Return the existing schemas of the search path."""
        return "SET search_path = " + ", ".join(NAMES.quote(each) for each in connection.scalar(_SQL["path"]) or ())

    def statements(self, *, ledger: bool) -> list[str]:
        """Return the statements that create the role and the schema, and grant access to Lodger's own tables in the ledger."""
        return [each.format(**self._quoted) for each in (*_MAKE, *(_OWN_TABLES if ledger else ()))]

    def own_table(self, name: str) -> str:
        """Return the statement that gives one of Lodger's tables to the user."""
        return _SQL["own_table"].text.format(table=name, **self._quoted)

    def trigger_function(self) -> str:
        """Return the statement that creates the function of the triggers for changes.

        It has its owner's rights, so it belongs to the user, whoever creates it, and only the user's own triggers call it. Lodger's table
        has its schema in its name, whatever the writer's search path is.
        """
        return _SQL["trigger_function"].text.format(function=f"{self._quoted['schema']}.{CHANGES}", **self._quoted)

    def feed_statements(self) -> list[str]:
        """Return the statements that the ledger's database gets with its tables: the role reads one tenant's changes."""
        made = [f"GRANT SELECT ON lodger_changes, lodger_changes_forgotten TO {self._quoted['role']}"]
        for table in ("lodger_changes", "lodger_changes_forgotten"):
            made += [
                f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
                f"DROP POLICY IF EXISTS lodger_tenant ON {table}",
                f"CREATE POLICY lodger_tenant ON {table} FOR SELECT USING (owner = current_setting('lodger.owner', true))",
                f"DROP POLICY IF EXISTS lodger_engine ON {table}",
                f"CREATE POLICY lodger_engine ON {table} USING ({ENGINES})",
            ]
        return made


#: The condition that the present user is no role of scripts.
ENGINES = f"NOT starts_with(current_user::text, '{ROLE}')"


def _bounded(start: str, name: str) -> str:
    """Return ``start`` and a name as one name of at most 63 bytes, with the digest of a longer name, as :data:`ROLE_OF_USER` does."""
    whole = start + name
    return whole if len(whole.encode()) <= 63 else start + hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()


def _literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _names(plan: ViewPlan, wanted: frozenset[Column[Any]]) -> str:
    """Return the quoted names of a plan's columns, as a list."""
    return ", ".join(NAMES.quote(column.name) for column in plan.columns if column in wanted)


def _condition(tenant: Column[Any], setting: str) -> str:
    """Return the condition that a row belongs to the tenant of a setting."""
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


#: The role, which belongs to the whole server, and the schema. Another Lodger's objects are neither used nor taken over.
_MAKE = (
    _SQL["role"].text,
    _SQL["schema"].text,
    "REVOKE ALL ON SCHEMA {schema} FROM PUBLIC",
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
)
#: Grants the role access to Lodger's own tables for scripts; row-level security restricts it to one tenant.
_OWN_TABLES = (
    "DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), {role_text}); END $$",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON lodger_kv, lodger_documents, lodger_document_index TO {role}",
    "GRANT SELECT ON lodger_changes, lodger_changes_forgotten, lodger_cursors, lodger_collection_indexes TO {role}",
)

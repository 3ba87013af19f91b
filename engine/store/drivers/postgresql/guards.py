"""Triggers, row-level security and vacuum settings of the ledger's tables on PostgreSQL.

Row-level security stands on every table, so that a privilege granted by mistake shows the scripts' role no rows. Functions have
the rights of the tables' owner: a writer may be a role without access to Lodger's other tables.
"""

# ruff: noqa: S608 - every statement is made of names of Lodger's own tables

from collections.abc import Iterator, Sequence

from sqlalchemy import Table

from lodger.engine.store.drivers.guards import Churn, RowTrigger, ScriptAccess, Stored, guards_of
from lodger.engine.store.drivers.postgresql.row_security import ACT, ENGINES, ROLE_OF_USER
from lodger.engine.store.drivers.sql_files import statements_of

_SQL = statements_of(__file__)
APPEND_ONLY = "the audit log is append-only"
_VACUUM = {
    # Dead rows are removed after a thousand and a fiftieth of the table, not a fifth.
    Churn.HOT: "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, "
    "autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1",
    # Their statistics and visibility follow soon enough for plans by index.
    Churn.GROWING: "autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05, "
    "autovacuum_analyze_scale_factor = 0.05",
}
#: Roles belong to the whole server: another database may have created it, and this user may lack the privilege. Without
#: the role queries are separated by their own conditions alone, and the engine reports it.
_ROLE = _SQL["role"].format(role_of_user=ROLE_OF_USER, act=ACT)
#: A schema for temporary tables that is not named would be searched first: its owner's tables and triggers would have these rights.
_FUNCTION = _SQL["function"]


def statements(tables: Sequence[Table]) -> Iterator[str]:
    """Yield the statements that complete new tables."""
    yield _ROLE
    for table in tables:
        needs = guards_of(table)
        yield f"ALTER TABLE {table.name} ENABLE ROW LEVEL SECURITY"
        # An engine that does not own the tables uses its grants.
        yield f"CREATE POLICY lodger_engine ON {table.name} USING ({ENGINES})"
        if needs.scripts is not None:
            yield from _scripts(table.name, needs.scripts)
        if needs.stored is not None:
            yield from _counting(table.name, needs.stored)
        if needs.append_only is not None:
            yield from _append_only(table.name, needs.append_only)
        if needs.churn is not None:
            yield f"ALTER TABLE {table.name} SET ({_VACUUM[needs.churn]})"
    for table in tables:
        for trigger in guards_of(table).triggers:
            yield from _row_trigger(trigger)


def _scripts(table: str, access: ScriptAccess) -> Iterator[str]:
    """Yield the statements that grant the role of scripts access to a table, to one tenant's rows."""
    grant = f"EXECUTE format('GRANT {access.privileges} ON {table} TO %I', role)"
    yield (
        f"DO $$ DECLARE role name := {ROLE_OF_USER}; "
        f"BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN {grant}; END IF; END $$"
    )
    # A missing setting matches no tenant.
    mine = f"{access.tenant} = current_setting('{access.setting}', true)"
    only_reads = access.privileges == "SELECT"
    verbs = f"FOR SELECT USING ({mine})" if only_reads else f"USING ({mine}) WITH CHECK ({mine})"
    yield f"CREATE POLICY lodger_tenant ON {table} {verbs}"


def _counting(table: str, stored: Stored) -> Iterator[str]:
    """Yield the statements of a trigger that counts the stored bytes of tenants."""
    # Once per statement.
    size = "sum(" + " + ".join(f'coalesce(octet_length("{column}"), 0)' for column in stored.columns) + ")"
    counter, amounts = stored.counter, {"kept_bytes": "0", "history_bytes": "0", "audit_bytes": "0"}
    amounts[counter] = size
    more = (
        f"INSERT INTO lodger_storage (tenant_id, {', '.join(amounts)}) SELECT tenant_id, {', '.join(amounts.values())} FROM added "
        f"WHERE tenant_id <> '' GROUP BY tenant_id "
        f"ON CONFLICT (tenant_id) DO UPDATE SET {counter} = lodger_storage.{counter} + excluded.{counter};"
    )
    less = (
        f"UPDATE lodger_storage SET {counter} = {counter} - gone.bytes FROM (SELECT tenant_id, {size} AS bytes FROM removed "
        "GROUP BY tenant_id) AS gone WHERE lodger_storage.tenant_id = gone.tenant_id;"
    )
    events = [("more", "INSERT", "NEW TABLE AS added", more), ("less", "DELETE", "OLD TABLE AS removed", less)]
    if stored.updated:
        events.append(("other", "UPDATE", "NEW TABLE AS added OLD TABLE AS removed", f"{less} {more}"))
    for name, event, seen, body in events:
        yield _FUNCTION.format(name=f"{table}_{name}", body=body)
        yield (
            f"CREATE TRIGGER {table}_{name} AFTER {event} ON {table} REFERENCING {seen} FOR EACH STATEMENT "
            f"EXECUTE FUNCTION {table}_{name}()"
        )


def _append_only(table: str, deletable: str) -> Iterator[str]:
    """Yield the statements of a trigger that refuses changes of rows."""
    yield f"""
        CREATE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'DELETE' THEN
                IF {deletable} THEN RETURN OLD; END IF;
            END IF;
            RAISE EXCEPTION '{APPEND_ONLY}' USING ERRCODE = 'restrict_violation';
        END $$
        """
    for name, event, each in (("kept", "UPDATE OR DELETE", "ROW"), ("stays", "TRUNCATE", "STATEMENT")):
        yield (
            f"CREATE TRIGGER {table}_{name} BEFORE {event} ON {table} FOR EACH {each} EXECUTE FUNCTION {table}_refuse()"
        )


def _row_trigger(trigger: RowTrigger) -> Iterator[str]:
    """Yield the statements that create a trigger function and its triggers."""
    body = f"IF {trigger.condition} THEN {trigger.statement}; END IF;"
    yield _FUNCTION.format(name=trigger.name, body=body)
    for name, (event, condition) in trigger.events.items():
        yield (
            f"CREATE TRIGGER {trigger.name}_{name} AFTER {event} FOR EACH ROW WHEN ({condition}) "
            f"EXECUTE FUNCTION {trigger.name}()"
        )

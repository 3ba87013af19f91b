"""Script versions and schedule revisions count towards a tenant's stored bytes, params towards its history, the audit log separately."""

# ruff: noqa: S608 - every statement is made of names in this file

import sqlalchemy as sa
from alembic import op

revision = "0114"
down_revision = "0112"
branch_labels = None
depends_on = None

#: Tables with rows that are only inserted and deleted, the counter, and the counted columns.
COUNTED = (
    ("lodger_script_versions", "kept_bytes", ("modules", "wasm", "fields", "why")),
    ("lodger_schedule_revisions", "kept_bytes", ("rules", "sentence", "steps", "limits", "params", "why")),
    ("lodger_audit", "audit_bytes", ("before", "after", "why")),
)


def upgrade() -> None:
    """Upgrade the schema."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    size = "coalesce(length(CAST({} AS BLOB)), 0)" if sqlite else "coalesce(octet_length({}), 0)"
    op.add_column("lodger_storage", sa.Column("audit_bytes", sa.BigInteger(), nullable=False, server_default="0"))
    for table, counter, columns in COUNTED:
        op.execute(_add(counter, _sum(size, columns), f"{table} WHERE tenant_id <> ''"))
        for statement in (_on_sqlite if sqlite else _on_postgresql)(table, counter, columns, size):
            op.execute(statement)
    op.execute(_add("history_bytes", size.format("params"), "lodger_actions WHERE params IS NOT NULL"))


def _sum(size: str, columns: tuple[str, ...], row: str = "") -> str:
    return " + ".join(size.format(row + _quoted(column)) for column in columns)


def _quoted(column: str) -> str:
    return f'"{column}"'


def _add(counter: str, size: str, source: str) -> str:
    total = _values(counter, f"sum({size})")
    return (
        "INSERT INTO lodger_storage (tenant_id, kept_bytes, history_bytes, audit_bytes) "
        f"SELECT tenant_id, {total} FROM {source} "
        f"GROUP BY tenant_id ON CONFLICT (tenant_id) DO UPDATE SET {counter} = lodger_storage.{counter} + excluded.{counter}"
    )


def _values(counter: str, size: str) -> str:
    return ", ".join(size if name == counter else "0" for name in ("kept_bytes", "history_bytes", "audit_bytes"))


def _on_sqlite(table: str, counter: str, columns: tuple[str, ...], size: str) -> list[str]:
    more = (
        "INSERT INTO lodger_storage (tenant_id, kept_bytes, history_bytes, audit_bytes) "
        f"VALUES (NEW.tenant_id, {_values(counter, _sum(size, columns, 'NEW.'))}) "
        f"ON CONFLICT (tenant_id) DO UPDATE SET {counter} = {counter} + excluded.{counter};"
    )
    less = f"UPDATE lodger_storage SET {counter} = {counter} - ({_sum(size, columns, 'OLD.')}) WHERE tenant_id = OLD.tenant_id;"
    return [
        f"CREATE TRIGGER {table}_more AFTER INSERT ON {table} WHEN NEW.tenant_id <> '' BEGIN {more} END",
        f"CREATE TRIGGER {table}_less AFTER DELETE ON {table} BEGIN {less} END",
    ]


def _on_postgresql(table: str, counter: str, columns: tuple[str, ...], size: str) -> list[str]:
    # With the rights of the tables' owner, once per statement: the writer may be a role without access to Lodger's
    # other tables.
    more = _add(counter, _sum(size, columns), "added WHERE tenant_id <> ''")
    less = (
        f"UPDATE lodger_storage SET {counter} = {counter} - gone.bytes FROM (SELECT tenant_id, sum({_sum(size, columns)}) AS bytes "
        "FROM removed GROUP BY tenant_id) AS gone WHERE lodger_storage.tenant_id = gone.tenant_id"
    )
    made = []
    for name, event, seen, body in (
        ("more", "INSERT", "NEW TABLE AS added", more),
        ("less", "DELETE", "OLD TABLE AS removed", less),
    ):
        made += [
            (
                f"CREATE FUNCTION {table}_{name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT "
                f"AS $$ BEGIN {body}; RETURN NULL; END $$"
            ),
            (
                f"CREATE TRIGGER {table}_{name} AFTER {event} ON {table} REFERENCING {seen} FOR EACH STATEMENT "
                f"EXECUTE FUNCTION {table}_{name}()"
            ),
        ]
    return made


def downgrade() -> None:
    """Downgrade the schema."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    size = "coalesce(length(CAST({} AS BLOB)), 0)" if sqlite else "coalesce(octet_length({}), 0)"
    less = "UPDATE lodger_storage SET {0} = {0} - coalesce((SELECT sum({1}) FROM {2} AS t WHERE t.tenant_id = lodger_storage.tenant_id), 0)"
    op.execute(less.format("history_bytes", size.format("params"), "lodger_actions"))
    for table, counter, columns in COUNTED:
        op.execute(less.format(counter, _sum(size, columns), table))
        for name in ("more", "less"):
            op.execute(f"DROP TRIGGER {table}_{name}" + ("" if sqlite else f" ON {table}"))
            if not sqlite:
                op.execute(f"DROP FUNCTION {table}_{name}()")
    op.drop_column("lodger_storage", "audit_bytes")

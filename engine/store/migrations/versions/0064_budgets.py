"""Every budget of a day in the tenants' usage, reservations of running attempts, and the bytes that each tenant uses."""

# ruff: noqa: S608 - every statement is made of names in this file

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0064"
down_revision = "0053"
branch_labels = None
depends_on = None

COUNTED = ("calls", "queries", "rows_read", "rows_written", "bytes_written", "events", "fetches", "fetch_bytes")
#: Counting in ``lodger_storage``: table, counted columns, counter, and whether those columns are ever changed.
STORED = (
    ("lodger_kv", ("key", "value"), "kept_bytes", True),
    ("lodger_documents", ("id", "body"), "kept_bytes", True),
    ("lodger_sealed", ("docket", "own"), "kept_bytes", False),
    ("lodger_outbox", ("payload",), "history_bytes", False),
)
#: The rest of history, which the engine itself counts.
HISTORY = (
    ("lodger_actions", ("result",)),
    ("lodger_attempts", ("error", "effects")),
    ("lodger_attempt_logs", ("lines",)),
)
_ID = sa.String(length=36).with_variant(postgresql.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    """Upgrade the schema."""
    for name in COUNTED:
        op.add_column("lodger_usage_days", sa.Column(name, sa.BigInteger(), server_default="0", nullable=False))
    op.create_table(
        "lodger_lots",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("action_id", _ID, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("budget", sa.String(length=32), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "action_id", "attempt", "budget", "day", name="pk_lodger_lots"),
    )
    op.create_table(
        "lodger_storage",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("kept_bytes", sa.BigInteger(), nullable=False),
        sa.Column("history_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_lodger_storage"),
    )
    sqlite = op.get_bind().dialect.name == "sqlite"
    _count_what_is_there("length(CAST({} AS BLOB))" if sqlite else "octet_length({})")
    for stored in STORED:
        for statement in _on_sqlite(*stored) if sqlite else _on_postgresql(*stored):
            op.execute(statement)


def _count_what_is_there(size: str) -> None:
    def total(columns: tuple[str, ...]) -> str:
        return " + ".join(f"coalesce({size.format(column)}, 0)" for column in columns)

    def part(table: str, columns: tuple[str, ...], *, kept: bool) -> str:
        both = (total(columns), "0") if kept else ("0", total(columns))
        return f"SELECT tenant_id, {both[0]} AS kept, {both[1]} AS history FROM {table}"

    parts = [part(table, columns, kept=counter == "kept_bytes") for table, columns, counter, _changed in STORED]
    everything = " UNION ALL ".join([*parts, *(part(table, columns, kept=False) for table, columns in HISTORY)])
    op.execute(
        "INSERT INTO lodger_storage (tenant_id, kept_bytes, history_bytes) "
        f"SELECT tenant_id, sum(kept), sum(history) FROM ({everything}) AS parts GROUP BY tenant_id"
    )


def _values(counter: str, amount: str) -> str:
    return f"{amount}, 0" if counter == "kept_bytes" else f"0, {amount}"


def _on_sqlite(table: str, columns: tuple[str, ...], counter: str, changed: bool) -> list[str]:
    def size(row: str) -> str:
        return " + ".join(f"length(CAST({row}.{column} AS BLOB))" for column in columns)

    more = (
        f"INSERT INTO lodger_storage (tenant_id, kept_bytes, history_bytes) VALUES (NEW.tenant_id, {_values(counter, size('NEW'))}) "
        f"ON CONFLICT (tenant_id) DO UPDATE SET {counter} = {counter} + excluded.{counter};"
    )
    less = f"UPDATE lodger_storage SET {counter} = {counter} - ({size('OLD')}) WHERE tenant_id = OLD.tenant_id;"
    events = [("more", "INSERT", more), ("less", "DELETE", less)] + (
        [("other", "UPDATE", less + more)] if changed else []
    )
    return [f"CREATE TRIGGER {table}_{name} AFTER {event} ON {table} BEGIN {body} END" for name, event, body in events]


def _on_postgresql(table: str, columns: tuple[str, ...], counter: str, changed: bool) -> list[str]:
    # Once per statement, with the rights of the tables' owner: the writer may be a role without access to the ledger.
    size = "sum(" + " + ".join(f"octet_length({column})" for column in columns) + ")"
    more = (
        f"INSERT INTO lodger_storage (tenant_id, kept_bytes, history_bytes) SELECT tenant_id, {_values(counter, size)} FROM added "
        f"GROUP BY tenant_id ON CONFLICT (tenant_id) DO UPDATE SET {counter} = lodger_storage.{counter} + excluded.{counter};"
    )
    less = (
        f"UPDATE lodger_storage SET {counter} = {counter} - gone.bytes FROM (SELECT tenant_id, {size} AS bytes FROM removed "
        "GROUP BY tenant_id) AS gone WHERE lodger_storage.tenant_id = gone.tenant_id;"
    )
    events = [("more", "INSERT", "NEW TABLE AS added", more), ("less", "DELETE", "OLD TABLE AS removed", less)]
    if changed:
        events.append(("other", "UPDATE", "NEW TABLE AS added OLD TABLE AS removed", less + more))
    made = []
    for name, event, seen, body in events:
        made.append(
            f"CREATE FUNCTION {table}_{name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT "
            f"AS $$ BEGIN {body} RETURN NULL; END $$"
        )
        made.append(
            f"CREATE TRIGGER {table}_{name} AFTER {event} ON {table} REFERENCING {seen} FOR EACH STATEMENT "
            f"EXECUTE FUNCTION {table}_{name}()"
        )
    return made


def downgrade() -> None:
    """Downgrade the schema."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    for table, _columns, _counter, changed in STORED:
        for name in ("more", "less", "other") if changed else ("more", "less"):
            op.execute(f"DROP TRIGGER {table}_{name}" + ("" if sqlite else f" ON {table}"))
            if not sqlite:
                op.execute(f"DROP FUNCTION {table}_{name}()")
    op.drop_table("lodger_storage")
    op.drop_table("lodger_lots")
    for name in reversed(COUNTED):
        op.drop_column("lodger_usage_days", name)

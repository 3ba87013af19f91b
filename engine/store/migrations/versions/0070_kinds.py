"""Kinds of scripts and their typed params; labels of tenants, actions and nodes; the ready queue by label; named locks."""

import time
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0070"
down_revision = "0062"
branch_labels = None
depends_on = None

_KIND = "CHECK (kind IN ('script', 'ping', 'host', 'bound'))"
_STARTING = "startable_at IS NOT NULL"
_STARTABLE = "held = 0 AND state IN ('ready', 'waiting_retry')"


def where(condition: str) -> dict[str, Any]:
    """Return the condition of a partial index, for either database."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def labels(name: str) -> sa.Column[str]:
    """Return a column of labels."""
    return sa.Column(name, sa.String(1000), server_default="", nullable=False)


def added() -> list[tuple[str, sa.Column[Any]]]:
    """Return the new columns with their tables; each call makes new ones, because a column belongs to one statement."""
    return [
        ("lodger_tenants", labels("labels")),
        ("lodger_scripts", sa.Column("offered", sa.SmallInteger(), server_default="0", nullable=False)),
        ("lodger_script_versions", sa.Column("fields", sa.Text(), nullable=True)),
        ("lodger_schedule_revisions", labels("requires")),
        ("lodger_actions", labels("requires")),
        ("lodger_nodes", sa.Column("seen_us", sa.BigInteger(), server_default="0", nullable=False)),
        ("lodger_nodes", sa.Column("labels", sa.Text(), server_default="", nullable=False)),
        ("lodger_nodes", sa.Column("slots", sa.Integer(), server_default="0", nullable=False)),
        ("lodger_nodes", sa.Column("version", sa.String(40), server_default="", nullable=False)),
    ]


def upgrade() -> None:
    """Upgrade the schema."""
    for table, column in added():
        op.add_column(table, column)
    # In one statement, because SQLite cannot add a constraint later.
    op.execute(
        "ALTER TABLE lodger_scripts ADD COLUMN kind VARCHAR(10) DEFAULT 'script' NOT NULL "
        f"CONSTRAINT ck_lodger_scripts_kind {_KIND}"
    )
    op.create_index("ix_lodger_scripts_bound", "lodger_scripts", ["id"], **where("kind = 'bound'"))
    _startable(["tenant_id", "requires", "priority", "due_at", "id"])
    op.execute("CREATE TABLE lodger_turns_before AS SELECT * FROM lodger_turns")
    op.drop_table("lodger_turns")
    op.create_table(
        "lodger_turns",
        sa.Column("tenant_id", sa.String(200), nullable=False),
        labels("requires"),
        labels("bound"),
        sa.Column("served_us", sa.BigInteger(), nullable=False),
        sa.Column("startable_at", sa.BigInteger(), nullable=True),
        sa.Column("cap", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "requires", name="pk_lodger_turns"),
    )
    op.create_index("ix_lodger_turns_startable", "lodger_turns", ["requires", "startable_at"], **where(_STARTING))
    op.create_index("ix_lodger_turns_line", "lodger_turns", ["requires", "served_us", "tenant_id"], **where(_STARTING))
    op.create_index("ix_lodger_turns_bound", "lodger_turns", ["bound"], **where("bound <> ''"))
    _refill()
    _make_platform()
    op.create_table(
        "lodger_locks",
        sa.Column("tenant_id", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("holder", sa.String(200), nullable=True),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=True),
        sa.Column("taken_us", sa.BigInteger(), nullable=False),
        sa.Column("freed_us", sa.BigInteger(), nullable=True),
        sa.Column("node", sa.String(200), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "name", name="pk_lodger_locks"),
    )


def _make_platform() -> None:
    """Insert the tenant of the platform itself."""
    limits = '{"concurrent_runs": 1000, "min_interval_s": 1, "schedules": 10000}'
    made = {"limits": limits, "now": time.time_ns() // 1000}
    op.get_bind().execute(
        sa.text(
            "INSERT INTO lodger_tenants (id, name, state, generation, limits, created_us) "
            "VALUES ('@platform', 'the platform', 'active', 1, :limits, :now)"
        ),
        made,
    )
    op.execute("INSERT INTO lodger_turns (tenant_id, served_us, startable_at, cap) VALUES ('@platform', 0, NULL, 1000)")


def _startable(columns: list[str]) -> None:
    op.drop_index("ix_lodger_actions_startable", table_name="lodger_actions")
    op.create_index("ix_lodger_actions_startable", "lodger_actions", columns, **where(_STARTABLE))


def _refill() -> None:
    op.execute(
        "INSERT INTO lodger_turns (tenant_id, served_us, startable_at, cap) "
        "SELECT tenant_id, served_us, startable_at, cap FROM lodger_turns_before"
    )
    op.drop_table("lodger_turns_before")


def downgrade() -> None:
    """Downgrade the schema; actions that required labels may run anywhere then, and schedules of platform scripts cannot run."""
    op.drop_table("lodger_locks")
    op.execute("DELETE FROM lodger_tenants WHERE id = '@platform'")
    op.execute(
        "CREATE TABLE lodger_turns_before AS SELECT * FROM lodger_turns WHERE requires = '' AND tenant_id <> '@platform'"
    )
    op.drop_table("lodger_turns")
    op.create_table(
        "lodger_turns",
        sa.Column("tenant_id", sa.String(200), nullable=False),
        sa.Column("served_us", sa.BigInteger(), nullable=False),
        sa.Column("startable_at", sa.BigInteger(), nullable=True),
        sa.Column("cap", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_lodger_turns"),
    )
    op.create_index("ix_lodger_turns_startable", "lodger_turns", ["startable_at"], **where(_STARTING))
    _refill()
    _startable(["tenant_id", "priority", "due_at", "id"])
    op.drop_index("ix_lodger_scripts_bound", table_name="lodger_scripts")
    op.drop_column("lodger_scripts", "kind")
    for table, column in reversed(added()):
        op.drop_column(table, column.name)

"""Conduct of schedules, steps, priority, expiry, backfill beside slots, mails per day."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0002"
branch_labels = None
depends_on = None

_EXPIRING = "expires_at IS NOT NULL AND state = 'ready' AND step = 0"
_STARTABLE = "held = 0 AND state IN ('ready', 'waiting_retry')"
_SLOTTED = "origin IN ('slot', 'backfill')"


def where(condition: str) -> dict[str, Any]:
    """Return the condition of a partial index, for either database."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def added() -> list[tuple[str, sa.Column[Any]]]:
    """Return the new columns with their tables; each call makes new ones, because a column belongs to one statement."""
    return [
        ("lodger_schedules", sa.Column("failures", sa.Integer(), server_default="0", nullable=False)),
        ("lodger_schedules", sa.Column("forgotten_us", sa.BigInteger(), nullable=True)),
        ("lodger_schedule_revisions", sa.Column("conduct", sa.Text(), nullable=True)),
        ("lodger_schedule_revisions", sa.Column("steps", sa.Text(), nullable=True)),
        ("lodger_actions", sa.Column("steps", sa.Text(), nullable=True)),
        ("lodger_actions", sa.Column("handed", sa.Text(), nullable=True)),
        ("lodger_actions", sa.Column("priority", sa.SmallInteger(), server_default="0", nullable=False)),
        ("lodger_actions", sa.Column("expires_at", sa.BigInteger(), nullable=True)),
        ("lodger_usage_days", sa.Column("mails", sa.Integer(), server_default="0", nullable=False)),
    ]


def upgrade() -> None:
    """Upgrade the schema."""
    for table, column in added():
        op.add_column(table, column)
    op.drop_index("uq_lodger_actions_slot", table_name="lodger_actions")
    op.create_index(
        "uq_lodger_actions_slot",
        "lodger_actions",
        ["schedule_id", "slot", "origin", "node_key"],
        unique=True,
        **where(_SLOTTED),
    )
    op.drop_index("ix_lodger_actions_startable", table_name="lodger_actions")
    op.create_index(
        "ix_lodger_actions_startable",
        "lodger_actions",
        ["tenant_id", "priority", "due_at", "id"],
        unique=False,
        **where(_STARTABLE),
    )
    op.create_index("ix_lodger_actions_expiring", "lodger_actions", ["expires_at"], unique=False, **where(_EXPIRING))


def downgrade() -> None:
    """Downgrade the schema; backfills become replays, because the older key allows one row per slot only."""
    op.drop_index("ix_lodger_actions_expiring", table_name="lodger_actions")
    op.drop_index("ix_lodger_actions_startable", table_name="lodger_actions")
    op.create_index(
        "ix_lodger_actions_startable",
        "lodger_actions",
        ["tenant_id", "due_at", "id"],
        unique=False,
        **where(_STARTABLE),
    )
    op.drop_index("uq_lodger_actions_slot", table_name="lodger_actions")
    op.execute("UPDATE lodger_actions SET origin = 'replay' WHERE origin = 'backfill'")
    op.create_index(
        "uq_lodger_actions_slot",
        "lodger_actions",
        ["schedule_id", "slot", "node_key"],
        unique=True,
        **where(_SLOTTED),
    )
    for table, column in reversed(added()):
        op.drop_column(table, column.name)

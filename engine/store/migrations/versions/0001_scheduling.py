"""Tenants, scripts, schedules, clocks, actions, attempts and nodes."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.String(length=36).with_variant(sa.UUID(as_uuid=False), "postgresql")


def where(condition: str) -> dict[str, Any]:
    """Return the condition of a partial index, for either database."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "lodger_actions",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("schedule_id", ID, nullable=True),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("origin", sa.String(length=10), nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=True),
        sa.Column("slot_to", sa.BigInteger(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("held", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("reason", sa.String(length=40), nullable=True),
        sa.Column("script_id", ID, nullable=True),
        sa.Column("script_version", sa.Integer(), nullable=True),
        sa.Column("params", sa.Text(), nullable=True),
        sa.Column("request_key", sa.String(length=200), nullable=True),
        sa.Column("replay_of", ID, nullable=True),
        sa.Column("node_key", sa.String(length=200), server_default="", nullable=False),
        sa.Column("node_id", ID, nullable=True),
        sa.Column("lease_epoch", sa.Integer(), nullable=True),
        sa.Column("step", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tenant_faults", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("engine_faults", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("conflicts", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=True),
        sa.Column("deadline_us", sa.BigInteger(), nullable=True),
        sa.Column("finished_us", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.String(length=20), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint("held = 0 OR state = 'ready'", name="ck_lodger_actions_held_is_ready"),
        sa.CheckConstraint(
            "origin IN ('slot', 'backfill', 'run_now', 'replay', 'once')", name="ck_lodger_actions_origin"
        ),
        sa.CheckConstraint(
            "slot_to IS NULL OR (state = 'skipped' AND slot_to > slot)", name="ck_lodger_actions_gap_is_skipped"
        ),
        sa.CheckConstraint(
            "state <> 'running' OR (node_id IS NOT NULL AND lease_epoch IS NOT NULL)",
            name="ck_lodger_actions_running_is_leased",
        ),
        sa.CheckConstraint("state <> 'skipped' OR reason IS NOT NULL", name="ck_lodger_actions_skipped_has_reason"),
        sa.CheckConstraint(
            "state IN ('ready', 'running', 'sealed', 'waiting_retry', 'done', 'failed', 'cancelled', 'skipped', 'expired')",
            name="ck_lodger_actions_state",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_lodger_actions"),
    )
    op.create_index(
        "ix_lodger_actions_leased", "lodger_actions", ["node_id"], unique=False, **where("state = 'running'")
    )
    op.create_index(
        "ix_lodger_actions_running",
        "lodger_actions",
        ["tenant_id", "node_id"],
        unique=False,
        **where("state = 'running'"),
    )
    op.create_index(
        "ix_lodger_actions_schedule",
        "lodger_actions",
        ["schedule_id", "state", "slot"],
        unique=False,
        **where("schedule_id IS NOT NULL"),
    )
    op.create_index(
        "ix_lodger_actions_startable",
        "lodger_actions",
        ["tenant_id", "due_at", "id"],
        unique=False,
        **where("held = 0 AND state IN ('ready', 'waiting_retry')"),
    )
    op.create_index(
        "uq_lodger_actions_request",
        "lodger_actions",
        ["tenant_id", "request_key"],
        unique=True,
        **where("request_key IS NOT NULL"),
    )
    op.create_index(
        "uq_lodger_actions_slot",
        "lodger_actions",
        ["schedule_id", "slot", "node_key"],
        unique=True,
        **where("origin IN ('slot', 'backfill')"),
    )
    op.create_table(
        "lodger_nodes",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("lease_until_us", sa.BigInteger(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("state IN ('alive', 'stopped', 'lost')", name="ck_lodger_nodes_state"),
        sa.PrimaryKeyConstraint("id", name="pk_lodger_nodes"),
    )
    op.create_table(
        "lodger_scripts",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_lodger_scripts"),
        sa.UniqueConstraint("tenant_id", "name", name="uq_lodger_scripts_tenant_id_name"),
    )
    op.create_table(
        "lodger_tenants",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("state IN ('active', 'suspended', 'deleted')", name="ck_lodger_tenants_state"),
        sa.PrimaryKeyConstraint("id", name="pk_lodger_tenants"),
    )
    op.create_table(
        "lodger_turns",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("served_us", sa.BigInteger(), nullable=False),
        sa.Column("startable_at", sa.BigInteger(), nullable=True),
        sa.Column("cap", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_lodger_turns"),
    )
    op.create_index(
        "ix_lodger_turns_startable", "lodger_turns", ["startable_at"], unique=False, **where("startable_at IS NOT NULL")
    )
    op.create_table(
        "lodger_usage_days",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("cpu_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "day", name="pk_lodger_usage_days"),
    )
    op.create_table(
        "lodger_attempt_logs",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("action_id", ID, nullable=False),
        sa.Column("step", sa.SmallInteger(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("lines", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "action_id"],
            ["lodger_actions.tenant_id", "lodger_actions.id"],
            name="fk_lodger_attempt_logs_tenant_id_action_id",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "action_id", "step", "n", name="pk_lodger_attempt_logs"),
    )
    op.create_table(
        "lodger_attempts",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("action_id", ID, nullable=False),
        sa.Column("step", sa.SmallInteger(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("node_id", ID, nullable=False),
        sa.Column("lease_epoch", sa.Integer(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("finished_us", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("effects", sa.Text(), nullable=True),
        sa.Column("cpu_us", sa.BigInteger(), nullable=False),
        sa.Column("wall_us", sa.BigInteger(), nullable=False),
        sa.Column("memory_peak_bytes", sa.BigInteger(), nullable=False),
        sa.Column("host_calls", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "action_id"],
            ["lodger_actions.tenant_id", "lodger_actions.id"],
            name="fk_lodger_attempts_tenant_id_action_id",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "action_id", "step", "n", name="pk_lodger_attempts"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "lodger_schedules",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("script_id", ID, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("deleted_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "script_id"],
            ["lodger_scripts.tenant_id", "lodger_scripts.id"],
            name="fk_lodger_schedules_tenant_id_script_id",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_lodger_schedules"),
    )
    op.create_index(
        "uq_lodger_schedules_name",
        "lodger_schedules",
        ["tenant_id", "name"],
        unique=True,
        **where("deleted_us IS NULL"),
    )
    op.create_table(
        "lodger_script_versions",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("script_id", ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("modules", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "script_id"],
            ["lodger_scripts.tenant_id", "lodger_scripts.id"],
            name="fk_lodger_script_versions_tenant_id_script_id",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "script_id", "version", name="pk_lodger_script_versions"),
    )
    op.create_table(
        "lodger_schedule_clock",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("schedule_id", ID, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.Column("accounted_us", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("tzdata", sa.String(length=16), nullable=False),
        sa.Column("wake_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(state = 'armed') = (next_at IS NOT NULL)", name="ck_lodger_schedule_clock_armed_has_next"),
        sa.CheckConstraint(
            "state IN ('armed', 'paused', 'suspended', 'ended', 'deleted')", name="ck_lodger_schedule_clock_state"
        ),
        sa.CheckConstraint("wake_at IS NULL OR state = 'paused'", name="ck_lodger_schedule_clock_wake_from_pause"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "schedule_id"],
            ["lodger_schedules.tenant_id", "lodger_schedules.id"],
            name="fk_lodger_schedule_clock_tenant_id_schedule_id",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "schedule_id", name="pk_lodger_schedule_clock"),
    )
    op.create_index(
        "ix_lodger_schedule_clock_next",
        "lodger_schedule_clock",
        ["next_at"],
        unique=False,
        **where("next_at IS NOT NULL"),
    )
    op.create_index("ix_lodger_schedule_clock_schedule", "lodger_schedule_clock", ["schedule_id"], unique=False)
    op.create_index(
        "ix_lodger_schedule_clock_wake",
        "lodger_schedule_clock",
        ["wake_at"],
        unique=False,
        **where("wake_at IS NOT NULL"),
    )
    op.create_table(
        "lodger_schedule_revisions",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("schedule_id", ID, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("script_id", ID, nullable=False),
        sa.Column("missed", sa.String(length=40), nullable=False),
        sa.Column("overlap", sa.String(length=20), nullable=False),
        sa.Column("retry", sa.Text(), nullable=True),
        sa.Column("limits", sa.Text(), nullable=True),
        sa.Column("params", sa.Text(), nullable=True),
        sa.Column("anchor_us", sa.BigInteger(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "schedule_id"],
            ["lodger_schedules.tenant_id", "lodger_schedules.id"],
            name="fk_lodger_schedule_revisions_tenant_id_schedule_id",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "schedule_id", "revision", name="pk_lodger_schedule_revisions"),
    )
    op.create_index(
        "ix_lodger_schedule_revisions_schedule", "lodger_schedule_revisions", ["schedule_id", "revision"], unique=False
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_lodger_schedule_revisions_schedule", table_name="lodger_schedule_revisions")
    op.drop_table("lodger_schedule_revisions")
    op.drop_index("ix_lodger_schedule_clock_wake", table_name="lodger_schedule_clock")
    op.drop_index("ix_lodger_schedule_clock_schedule", table_name="lodger_schedule_clock")
    op.drop_index("ix_lodger_schedule_clock_next", table_name="lodger_schedule_clock")
    op.drop_table("lodger_schedule_clock")
    op.drop_table("lodger_script_versions")
    op.drop_index("uq_lodger_schedules_name", table_name="lodger_schedules")
    op.drop_table("lodger_schedules")
    op.drop_table("lodger_attempts")
    op.drop_table("lodger_attempt_logs")
    op.drop_table("lodger_usage_days")
    op.drop_index("ix_lodger_turns_startable", table_name="lodger_turns")
    op.drop_table("lodger_turns")
    op.drop_table("lodger_tenants")
    op.drop_table("lodger_scripts")
    op.drop_table("lodger_nodes")
    op.drop_index("uq_lodger_actions_slot", table_name="lodger_actions")
    op.drop_index("uq_lodger_actions_request", table_name="lodger_actions")
    op.drop_index("ix_lodger_actions_startable", table_name="lodger_actions")
    op.drop_index("ix_lodger_actions_schedule", table_name="lodger_actions")
    op.drop_index("ix_lodger_actions_running", table_name="lodger_actions")
    op.drop_index("ix_lodger_actions_leased", table_name="lodger_actions")
    op.drop_table("lodger_actions")

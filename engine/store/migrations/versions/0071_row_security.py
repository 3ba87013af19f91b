"""On PostgreSQL: row-level security on every table, so that a privilege given by mistake shows the scripts' role nothing."""

from alembic import op

revision = "0071"
down_revision = "0064"
branch_labels = None
depends_on = None

#: All that had none yet; the scripts' role has no privilege on any of them.
TABLES = (
    "lodger_actions", "lodger_answers", "lodger_attempt_logs", "lodger_attempts", "lodger_audit", "lodger_fetches",
    "lodger_followers", "lodger_holds", "lodger_keys", "lodger_locks", "lodger_lots", "lodger_nodes", "lodger_outbox",
    "lodger_schedule_clock", "lodger_schedule_revisions", "lodger_schedules", "lodger_script_versions", "lodger_scripts",
    "lodger_sealed", "lodger_secrets", "lodger_sessions", "lodger_storage", "lodger_tenants", "lodger_tokens", "lodger_turns",
    "lodger_usage_days", "lodger_webhooks",
)  # fmt: skip


def upgrade() -> None:
    """Go forward."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        # An engine that is not the tables' owner goes by its grants.
        op.execute(f"CREATE POLICY lodger_engine ON {table} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Go back."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in TABLES:
        op.execute(f"DROP POLICY lodger_engine ON {table}")
        op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")

"""On PostgreSQL: row-level security on every table, so that a privilege granted by mistake shows the scripts' role no rows."""

from alembic import op

revision = "0071"
down_revision = "0064"
branch_labels = None
depends_on = None

#: All tables without it so far; the scripts' role has no privilege on any of them.
TABLES = (
    "lodger_actions", "lodger_answers", "lodger_attempt_logs", "lodger_attempts", "lodger_audit", "lodger_fetches",
    "lodger_followers", "lodger_holds", "lodger_keys", "lodger_locks", "lodger_lots", "lodger_nodes", "lodger_outbox",
    "lodger_schedule_clock", "lodger_schedule_revisions", "lodger_schedules", "lodger_script_versions", "lodger_scripts",
    "lodger_sealed", "lodger_secrets", "lodger_sessions", "lodger_storage", "lodger_tenants", "lodger_tokens", "lodger_turns",
    "lodger_usage_days", "lodger_webhooks",
)  # fmt: skip


def upgrade() -> None:
    """Upgrade the schema."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        # An engine that does not own the tables uses its grants.
        op.execute(f"CREATE POLICY lodger_engine ON {table} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Downgrade the schema."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in TABLES:
        op.execute(f"DROP POLICY lodger_engine ON {table}")
        op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")

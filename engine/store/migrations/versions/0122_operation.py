"""Identity of the ledger, the releases that may use its schema, and on PostgreSQL vacuum settings of hot tables."""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0122"
down_revision = "0120"
branch_labels = None
depends_on = None
compatible_with = "0120"

TABLE = "lodger_ledger"
#: Tables whose rows change at every slot: dead rows are removed after a thousand and a fiftieth of the table, not a fifth.
HOT = ("lodger_actions", "lodger_schedule_clock", "lodger_turns", "lodger_nodes", "lodger_outbox", "lodger_storage",
       "lodger_usage_days", "lodger_kv")  # fmt: skip
#: Tables that only grow and are pruned: their statistics and visibility follow soon enough for plans by index.
GROWING = ("lodger_attempts", "lodger_attempt_logs", "lodger_audit")


def upgrade() -> None:
    """Upgrade the schema."""
    made = op.create_table(
        TABLE,
        sa.Column("one", sa.SmallInteger(), nullable=False, autoincrement=False),
        sa.Column("identity", sa.String(length=36), nullable=False),
        sa.Column("compatible_with", sa.String(length=32), nullable=False),
        sa.CheckConstraint("one = 1", name="ck_lodger_ledger_one"),
        sa.PrimaryKeyConstraint("one", name="pk_lodger_ledger"),
    )
    op.bulk_insert(made, [{"one": 1, "identity": str(uuid.uuid4()), "compatible_with": compatible_with}])
    op.add_column("lodger_nodes", sa.Column("schema_revision", sa.String(length=32), server_default="", nullable=False))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY lodger_engine ON {TABLE} USING (current_user <> 'lodger_script')")
        for table in HOT:
            op.execute(
                f"ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, "
                "autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)"
            )
        for table in GROWING:
            op.execute(
                f"ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05, "
                "autovacuum_analyze_scale_factor = 0.05)"
            )


def downgrade() -> None:
    """Downgrade the schema."""
    if op.get_bind().dialect.name == "postgresql":
        for table in (*HOT, *GROWING):
            op.execute(
                f"ALTER TABLE {table} RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, "
                "autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor, autovacuum_vacuum_cost_delay)"
            )
    op.drop_column("lodger_nodes", "schema_revision")
    op.drop_table(TABLE)

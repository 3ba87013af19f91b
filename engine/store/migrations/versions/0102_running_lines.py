"""Log lines of running attempts, for readers in other processes."""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0071"
branch_labels = None
depends_on = None

TABLE = "lodger_running_lines"
ID = sa.String(length=36).with_variant(sa.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        TABLE,
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("action_id", ID, nullable=False),
        sa.Column("step", sa.SmallInteger(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("lines", sa.Text(), nullable=False),
        sa.Column("written_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "action_id"],
            ["lodger_actions.tenant_id", "lodger_actions.id"],
            name="fk_lodger_running_lines_tenant_id_action_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "action_id", "step", "n", "number", name="pk_lodger_running_lines"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY lodger_engine ON {TABLE} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table(TABLE)

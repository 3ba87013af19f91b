"""Metrics of the nodes of each process, shown by the API."""

import sqlalchemy as sa
from alembic import op

revision = "0112"
down_revision = "0111"
branch_labels = None
depends_on = None

TABLE = "lodger_node_figures"
ID = sa.String(length=36).with_variant(sa.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        TABLE,
        sa.Column("process", ID, nullable=False),
        sa.Column("node", sa.String(length=200), nullable=False),
        sa.Column("figures", sa.Text(), nullable=False),
        sa.Column("written_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("process", name="pk_lodger_node_figures"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY lodger_engine ON {TABLE} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table(TABLE)

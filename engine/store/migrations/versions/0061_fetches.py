"""Responses to HTTP requests of repeated attempts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0061"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "lodger_fetches",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column(
            "action_id", sa.String(length=36).with_variant(postgresql.UUID(as_uuid=False), "postgresql"), nullable=False
        ),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "action_id", "step", "key", name="pk_lodger_fetches"),
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("lodger_fetches")

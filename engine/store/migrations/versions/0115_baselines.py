"""Baselines of a schedule's run times, so that even a gradual slow-down is found."""

import sqlalchemy as sa
from alembic import op

revision = "0115"
down_revision = "0114"
branch_labels = None
depends_on = None

TABLE = "lodger_schedules"


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column(TABLE, sa.Column("baselines", sa.Text(), nullable=True))


def downgrade() -> None:
    """Downgrade the schema; a newer engine computes baselines again."""
    op.drop_column(TABLE, "baselines")

"""A schedule keeps what its runs usually take, so that a slow-down is found however gradual it is."""

import sqlalchemy as sa
from alembic import op

revision = "0115"
down_revision = "0114"
branch_labels = None
depends_on = None

TABLE = "lodger_schedules"


def upgrade() -> None:
    """Go forward."""
    op.add_column(TABLE, sa.Column("baselines", sa.Text(), nullable=True))


def downgrade() -> None:
    """Go back; a newer engine takes baselines anew."""
    op.drop_column(TABLE, "baselines")

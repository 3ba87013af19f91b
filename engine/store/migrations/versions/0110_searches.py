"""A clock knows whether it waits for a slot or goes on searching, and which slot ran last."""

import sqlalchemy as sa
from alembic import op

revision = "0110"
down_revision = "0103"
branch_labels = None
depends_on = None

TABLE = "lodger_schedule_clock"


def upgrade() -> None:
    """Go forward."""
    op.add_column(TABLE, sa.Column("searching", sa.Integer(), nullable=False, server_default="0"))
    op.add_column(TABLE, sa.Column("last_slot_us", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Go back; the older engine works every next slot out again at its next tick."""
    op.drop_column(TABLE, "last_slot_us")
    op.drop_column(TABLE, "searching")

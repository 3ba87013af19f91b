"""Clocks with an unfinished search for the next slot, and with the last slot that ran."""

import sqlalchemy as sa
from alembic import op

revision = "0110"
down_revision = "0103"
branch_labels = None
depends_on = None

TABLE = "lodger_schedule_clock"


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column(TABLE, sa.Column("searching", sa.Integer(), nullable=False, server_default="0"))
    op.add_column(TABLE, sa.Column("last_slot_us", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Downgrade the schema; the older engine computes every next slot again at its next tick."""
    op.drop_column(TABLE, "last_slot_us")
    op.drop_column(TABLE, "searching")

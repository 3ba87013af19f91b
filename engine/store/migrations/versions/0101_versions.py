"""Who stored a version of a script or a revision of a schedule, and why."""

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None

TABLES = ("lodger_script_versions", "lodger_schedule_revisions")


def upgrade() -> None:
    """Go forward; of what was stored before nobody knows."""
    for table in TABLES:
        op.add_column(table, sa.Column("created_by", sa.String(200), nullable=True))
        op.add_column(table, sa.Column("why", sa.Text(), nullable=True))


def downgrade() -> None:
    """Go back."""
    for table in TABLES:
        op.drop_column(table, "why")
        op.drop_column(table, "created_by")

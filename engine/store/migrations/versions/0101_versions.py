"""The actor and reason of script versions and schedule revisions."""

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None

TABLES = ("lodger_script_versions", "lodger_schedule_revisions")


def upgrade() -> None:
    """Upgrade the schema; existing rows have neither."""
    for table in TABLES:
        op.add_column(table, sa.Column("created_by", sa.String(200), nullable=True))
        op.add_column(table, sa.Column("why", sa.Text(), nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    for table in TABLES:
        op.drop_column(table, "why")
        op.drop_column(table, "created_by")

"""Grants of tenants, script versions and schedules; the tenants' own people."""

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0030"
branch_labels = None
depends_on = None

ADDED = (
    ("lodger_tenants", "grants"),
    ("lodger_tenants", "people"),
    ("lodger_script_versions", "grants"),
    ("lodger_schedule_revisions", "grants"),
)


def upgrade() -> None:
    """Upgrade the schema."""
    for table, column in ADDED:
        op.add_column(table, sa.Column(column, sa.Text(), nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    for table, column in reversed(ADDED):
        op.drop_column(table, column)

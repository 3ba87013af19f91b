"""Runs that scripts request: what requested an action, and how many were requested in a day."""

import sqlalchemy as sa
from alembic import op

revision = "0132"
down_revision = "0130"
branch_labels = None
depends_on = None

WAITING = sa.text("requested_by IS NOT NULL AND state = 'ready'")


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("lodger_actions", sa.Column("requested_by", sa.String(length=80), nullable=True))
    op.create_index("ix_lodger_actions_requested", "lodger_actions", ["tenant_id"], sqlite_where=WAITING,
                    postgresql_where=WAITING)  # fmt: skip
    op.add_column("lodger_usage_days", sa.Column("later_runs", sa.BigInteger(), server_default="0", nullable=False))


def downgrade() -> None:
    """Downgrade the schema; what requested an action is lost."""
    op.drop_column("lodger_usage_days", "later_runs")
    op.drop_index("ix_lodger_actions_requested", table_name="lodger_actions")
    op.drop_column("lodger_actions", "requested_by")

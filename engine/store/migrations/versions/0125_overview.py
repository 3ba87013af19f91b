"""Indexes of the overview: actions by id and by their end, failures, held actions, and stopped clocks."""

import sqlalchemy as sa
from alembic import op

revision = "0125"
down_revision = "0122"
branch_labels = None
depends_on = None

ACTIONS, CLOCKS = "lodger_actions", "lodger_schedule_clock"
INDEXES = (
    ("ix_lodger_actions_id", ACTIONS, ["id"], None),
    ("ix_lodger_actions_finished", ACTIONS, ["finished_us", "tenant_id"], "finished_us IS NOT NULL"),
    ("ix_lodger_actions_failed", ACTIONS, ["finished_us"], "state IN ('failed', 'expired')"),
    ("ix_lodger_actions_held", ACTIONS, ["due_at"], "held = 1"),
    ("ix_lodger_schedule_clock_stopped", CLOCKS, ["accounted_us"], "state IN ('paused', 'suspended')"),
)


def upgrade() -> None:
    """Upgrade the schema."""
    for name, table, columns, condition in INDEXES:
        where = None if condition is None else sa.text(condition)
        op.create_index(name, table, columns, unique=False, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    """Downgrade the schema."""
    for name, table, _columns, _condition in INDEXES:
        op.drop_index(name, table_name=table)

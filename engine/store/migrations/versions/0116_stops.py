"""Suspended scripts and paused nodes."""

import sqlalchemy as sa
from alembic import op

revision = "0116"
down_revision = "0115"
branch_labels = None
depends_on = None

SUSPENDED = sa.text("suspended_us IS NOT NULL")


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("lodger_scripts", sa.Column("suspended_us", sa.BigInteger(), nullable=True))
    op.add_column("lodger_nodes", sa.Column("paused_us", sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_lodger_scripts_suspended",
        "lodger_scripts",
        ["id", "tenant_id"],
        sqlite_where=SUSPENDED,
        postgresql_where=SUSPENDED,
    )


def downgrade() -> None:
    """Downgrade the schema; actions of suspended scripts and paused nodes may start again."""
    op.drop_index("ix_lodger_scripts_suspended", "lodger_scripts")
    op.drop_column("lodger_nodes", "paused_us")
    op.drop_column("lodger_scripts", "suspended_us")

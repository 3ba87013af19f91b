"""Encrypted secrets of tenants."""

import sqlalchemy as sa
from alembic import op

revision = "0062"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "lodger_secrets",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("hosts", sa.Text(), nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "name", name="pk_lodger_secrets"),
    )
    op.create_index("ix_lodger_secrets_key", "lodger_secrets", ["key_id"], unique=False)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_lodger_secrets_key", table_name="lodger_secrets")
    op.drop_table("lodger_secrets")

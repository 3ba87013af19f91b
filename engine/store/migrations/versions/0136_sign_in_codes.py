"""Codes of one-time sign-in links, apart from the sessions that they begin."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0136"
down_revision = "0135"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "lodger_sign_in_codes",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("token_id", sa.String(36).with_variant(postgresql.UUID(as_uuid=False), "postgresql"), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_lodger_sign_in_codes"),
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("lodger_sign_in_codes")

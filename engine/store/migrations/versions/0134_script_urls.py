"""URLs of scripts."""

import sqlalchemy as sa
from alembic import op

revision = "0134"
down_revision = "0133"
branch_labels = None
depends_on = None

TABLE = "lodger_script_urls"
ID = sa.String(length=36).with_variant(sa.UUID(as_uuid=False), "postgresql")
NAME = sa.String(length=200)


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        TABLE,
        sa.Column("tenant_id", NAME, nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("script", NAME, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("takes_get", sa.SmallInteger(), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("signature", sa.String(length=16), nullable=True),
        sa.Column("secret", sa.String(length=63), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("created_by", NAME, nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=True),
        sa.Column("used_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "name", name="pk_lodger_script_urls"),
        sa.UniqueConstraint("digest", name="uq_lodger_script_urls_digest"),
    )
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY lodger_engine ON {TABLE} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Downgrade the schema; URLs are lost."""
    op.drop_table(TABLE)

"""Indexes on paths of collections."""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0063"
branch_labels = None
depends_on = None

TABLES = ("lodger_collection_indexes", "lodger_document_index")
_MINE = "tenant_id = current_setting('lodger.tenant', true)"


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "lodger_collection_indexes",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("collection", sa.String(length=64), nullable=False),
        sa.Column("path", sa.String(length=520), nullable=False),
        sa.Column("complete", sa.SmallInteger(), nullable=False),
        sa.Column("upto", sa.String(length=200), nullable=False),
        sa.Column("made_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "collection", "path", name="pk_lodger_collection_indexes"),
    )
    words = sa.String(length=200).with_variant(sa.String(length=200, collation="C"), "postgresql")
    op.create_table(
        "lodger_document_index",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("collection", sa.String(length=64), nullable=False),
        sa.Column("path", sa.String(length=520), nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("number", sa.Double(), nullable=True),
        sa.Column("words", words, nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "collection", "path", "id", name="pk_lodger_document_index"),
    )
    for value in ("number", "words"):
        op.create_index(
            f"ix_lodger_document_index_{value}",
            "lodger_document_index",
            ["tenant_id", "collection", "path", "rank", value],
        )
    if op.get_bind().dialect.name == "postgresql":
        _wall()


def _wall() -> None:
    op.execute(
        """
        DO $$ BEGIN
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'lodger_script') THEN
                GRANT SELECT ON lodger_collection_indexes TO lodger_script;
                GRANT SELECT, INSERT, UPDATE, DELETE ON lodger_document_index TO lodger_script;
            END IF;
        END $$
        """
    )
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY lodger_tenant ON {table} USING ({_MINE}) WITH CHECK ({_MINE})")
        op.execute(f"CREATE POLICY lodger_engine ON {table} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Downgrade the schema."""
    for value in ("words", "number"):
        op.drop_index(f"ix_lodger_document_index_{value}", table_name="lodger_document_index")
    op.drop_table("lodger_document_index")
    op.drop_table("lodger_collection_indexes")

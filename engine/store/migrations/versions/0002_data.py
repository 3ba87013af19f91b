"""Keyed values, documents of collections, and the outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "lodger_kv",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=512), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=True),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "scope", "key", name="pk_lodger_kv"),
    )
    op.create_table(
        "lodger_documents",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("collection", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "collection", "id", name="pk_lodger_documents"),
    )
    op.create_table(
        "lodger_outbox",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("id", sa.String(length=80), nullable=False),
        sa.Column("action_id", sa.String(length=36), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("message_id", sa.String(length=200), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at_us", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("sent_us", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("state IN ('queued', 'sending', 'sent', 'failed')", name="ck_lodger_outbox_state"),
        sa.CheckConstraint("(state IN ('queued', 'sending')) = (next_at_us IS NOT NULL)", name="ck_lodger_outbox_due"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_lodger_outbox"),
        sa.UniqueConstraint("tenant_id", "action_id", "step", "n", name="uq_lodger_outbox_effect"),
    )
    op.create_index("ix_lodger_outbox_due", "lodger_outbox", ["state", "next_at_us"])


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_lodger_outbox_due", table_name="lodger_outbox")
    op.drop_table("lodger_outbox")
    op.drop_table("lodger_documents")
    op.drop_table("lodger_kv")

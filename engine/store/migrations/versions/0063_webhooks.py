"""Webhooks, and several receivers of one effect in the outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0063"
down_revision = "0052"
branch_labels = None
depends_on = None

_UNIQUE = "uq_lodger_outbox_effect"
_EFFECT = ["tenant_id", "action_id", "step", "n"]


def upgrade() -> None:
    """Upgrade the schema."""
    with op.batch_alter_table("lodger_outbox") as outbox:
        outbox.add_column(sa.Column("target", sa.String(length=63), server_default="", nullable=False))
        outbox.drop_constraint(_UNIQUE, type_="unique")
        outbox.create_unique_constraint(_UNIQUE, [*_EFFECT, "target"])
    op.create_index(
        "ix_lodger_outbox_lane", "lodger_outbox", ["kind", "tenant_id", "target", "state", "next_at_us"], unique=False
    )
    op.create_table(
        "lodger_webhooks",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("before_until_us", sa.BigInteger(), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("state IN ('on', 'off')", name="ck_lodger_webhooks_state"),
        sa.PrimaryKeyConstraint("tenant_id", "name", name="pk_lodger_webhooks"),
    )
    op.create_index("ix_lodger_webhooks_key", "lodger_webhooks", ["key_id"], unique=False)


def downgrade() -> None:
    """Downgrade the schema; waiting webhook messages are deleted."""
    op.drop_index("ix_lodger_webhooks_key", table_name="lodger_webhooks")
    op.drop_table("lodger_webhooks")
    op.drop_index("ix_lodger_outbox_lane", table_name="lodger_outbox")
    op.execute("DELETE FROM lodger_outbox WHERE kind = 'webhook'")
    with op.batch_alter_table("lodger_outbox") as outbox:
        outbox.drop_constraint(_UNIQUE, type_="unique")
        outbox.create_unique_constraint(_UNIQUE, _EFFECT)
        outbox.drop_column("target")

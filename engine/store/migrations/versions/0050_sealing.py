"""Sealed attempts, with effects that are being applied to a platform's own database, and the rows they hold meanwhile."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0050"
down_revision = "0101"
branch_labels = None
depends_on = None


def _id() -> sa.types.TypeEngine[str]:
    return sa.String(36).with_variant(postgresql.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "lodger_sealed",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("action_id", _id(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("docket", sa.Text(), nullable=False),
        sa.Column("own", sa.Text(), nullable=False),
        sa.Column("ended", sa.Text(), nullable=False),
        sa.Column("sealed_us", sa.BigInteger(), nullable=False),
        sa.Column("next_us", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "action_id", name="pk_lodger_sealed"),
    )
    op.create_index("ix_lodger_sealed_next", "lodger_sealed", ["next_us"])
    op.create_table(
        "lodger_holds",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=512), nullable=False),
        sa.Column("action_id", _id(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "kind", "scope", "key", name="pk_lodger_holds"),
    )
    op.create_index("ix_lodger_holds_action", "lodger_holds", ["action_id"])


def downgrade() -> None:
    """Downgrade the schema; refused while an attempt is sealed, because its effects would be lost."""
    if op.get_bind().scalar(sa.text("SELECT count(*) FROM lodger_sealed")):
        raise RuntimeError("attempts are sealed and not settled: let a node finish them first")
    op.drop_index("ix_lodger_holds_action", table_name="lodger_holds")
    op.drop_table("lodger_holds")
    op.drop_index("ix_lodger_sealed_next", table_name="lodger_sealed")
    op.drop_table("lodger_sealed")

"""The change feed, the positions of its consumers, and schedules that run on changes."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0052"
down_revision = "0070"
branch_labels = None
depends_on = None

_OWNED = ("lodger_changes", "lodger_changes_forgotten")


def _id() -> sa.types.TypeEngine[str]:
    return sa.String(36).with_variant(postgresql.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    """Upgrade the schema."""
    served = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "lodger_changes",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False),
        sa.Column(
            "xid",
            sa.BigInteger(),
            server_default=sa.text("(pg_current_xact_id()::text)::bigint" if served else "0"),
            nullable=False,
        ),
        sa.Column("source", sa.String(length=160), nullable=False),
        sa.Column("owner", sa.String(length=200), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("made_by", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("seq", name="pk_lodger_changes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_lodger_changes_feed", "lodger_changes", ["source", "owner", "xid", "seq"])
    op.create_index("ix_lodger_changes_order", "lodger_changes", ["xid", "seq"])
    op.create_table(
        "lodger_changes_forgotten",
        sa.Column("source", sa.String(length=160), nullable=False),
        sa.Column("owner", sa.String(length=200), nullable=False),
        sa.Column("xid", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source", "owner", name="pk_lodger_changes_forgotten"),
    )
    op.create_table(
        "lodger_cursors",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("consumer", sa.String(length=64), nullable=False),
        sa.Column("source", sa.String(length=160), nullable=False),
        sa.Column("xid", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "consumer", "source", name="pk_lodger_cursors"),
    )
    op.create_table(
        "lodger_followers",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("schedule_id", _id(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("bound_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "schedule_id", "name", name="pk_lodger_followers"),
    )
    op.create_index("ix_lodger_followers_name", "lodger_followers", ["name", "tenant_id"])
    op.create_index("ix_lodger_followers_bound", "lodger_followers", ["bound_us"])
    if served:
        _wall()


def _wall() -> None:
    op.execute(
        """
        DO $$ BEGIN
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'lodger_script') THEN
                GRANT SELECT ON lodger_changes, lodger_changes_forgotten, lodger_cursors TO lodger_script;
            END IF;
        END $$
        """
    )
    for table in (*_OWNED, "lodger_cursors"):
        mine = "owner = current_setting('lodger.owner', true)"
        if table not in _OWNED:
            mine = "tenant_id = current_setting('lodger.tenant', true)"
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY lodger_tenant ON {table} FOR SELECT USING ({mine})")
        op.execute(f"CREATE POLICY lodger_engine ON {table} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_lodger_followers_bound", table_name="lodger_followers")
    op.drop_index("ix_lodger_followers_name", table_name="lodger_followers")
    op.drop_table("lodger_followers")
    op.drop_table("lodger_cursors")
    op.drop_table("lodger_changes_forgotten")
    op.drop_index("ix_lodger_changes_order", table_name="lodger_changes")
    op.drop_index("ix_lodger_changes_feed", table_name="lodger_changes")
    op.drop_table("lodger_changes")

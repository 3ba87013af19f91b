"""Shadows of scripts."""

import sqlalchemy as sa
from alembic import op

revision = "0133"
down_revision = "0132"
branch_labels = None
depends_on = None

ID = sa.String(length=36).with_variant(sa.UUID(as_uuid=False), "postgresql")
NAME = sa.String(length=200)
TABLE = "lodger_script_shadows"
RUNNING = sa.text("state = 'running'")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        TABLE,
        sa.Column("tenant_id", NAME, nullable=False),
        sa.Column("script_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("live_version", sa.Integer(), nullable=False),
        sa.Column("modules", sa.Text(), nullable=False),
        sa.Column("wasm", sa.LargeBinary(), nullable=True),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("wanted", sa.SmallInteger(), nullable=False),
        sa.Column("automatic", sa.SmallInteger(), nullable=False),
        sa.Column("missed", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("runs", sa.Text(), nullable=False, server_default="[]"),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("created_by", NAME, nullable=True),
        sa.Column("why", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('running', 'finished', 'promoted')", name="ck_lodger_script_shadows_state"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "script_id"],
            ["lodger_scripts.tenant_id", "lodger_scripts.id"],
            name="fk_lodger_script_shadows_tenant_id_script_id",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "script_id", name="pk_lodger_script_shadows"),
    )
    op.create_index("ix_lodger_script_shadows_running", TABLE, ["tenant_id", "script_id"], sqlite_where=RUNNING,
                    postgresql_where=RUNNING)  # fmt: skip
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY lodger_engine ON {TABLE} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Downgrade the schema; shadows are lost, versions are not touched."""
    op.drop_table(TABLE)

"""Records of attempts, and which attempts of a script are recorded."""

import sqlalchemy as sa
from alembic import op

revision = "0130"
down_revision = "0125"
branch_labels = None
depends_on = None

ID = sa.String(length=36).with_variant(sa.UUID(as_uuid=False), "postgresql")
NAME = sa.String(length=200)
TABLE = "lodger_attempt_records"
KEPT = sa.text("record IS NOT NULL")


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("lodger_scripts", sa.Column("record", sa.String(length=8), nullable=True))
    op.create_index("ix_lodger_scripts_record", "lodger_scripts", ["tenant_id", "name"], sqlite_where=KEPT,
                    postgresql_where=KEPT)  # fmt: skip
    op.create_table(
        TABLE,
        sa.Column("tenant_id", NAME, nullable=False),
        sa.Column("action_id", ID, nullable=False),
        sa.Column("step", sa.SmallInteger(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "action_id"],
            ["lodger_actions.tenant_id", "lodger_actions.id"],
            name="fk_lodger_attempt_records_tenant_id_action_id",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "action_id", "step", "n", name="pk_lodger_attempt_records"),
    )
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY lodger_engine ON {TABLE} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Downgrade the schema; records are lost."""
    op.drop_table(TABLE)
    op.drop_index("ix_lodger_scripts_record", table_name="lodger_scripts")
    op.drop_column("lodger_scripts", "record")

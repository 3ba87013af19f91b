"""A trigger records schedules with a revision that a platform's own SQL has inserted; a node adopts them."""

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None

TABLE = "lodger_adoptions"
TRIGGER = "lodger_schedule_revisions_foreign"
ID = sa.String(length=36).with_variant(sa.UUID(as_uuid=False), "postgresql")

#: Lodger's own edits update the schedule's revision number before they insert the revision: a higher number was
#: inserted by external SQL.
_SQLITE = f"""
CREATE TRIGGER {TRIGGER} AFTER INSERT ON lodger_schedule_revisions
WHEN NEW.revision > (SELECT revision FROM lodger_schedules WHERE tenant_id = NEW.tenant_id AND id = NEW.schedule_id)
BEGIN
    INSERT INTO {TABLE} (tenant_id, schedule_id) VALUES (NEW.tenant_id, NEW.schedule_id) ON CONFLICT DO NOTHING;
END
"""  # noqa: S608 - names of ours
#: With the rights of the tables' owner: writers need no privilege on this table.
_FUNCTION = f"""
CREATE FUNCTION {TRIGGER}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$ BEGIN
    INSERT INTO {TABLE} (tenant_id, schedule_id)
    SELECT DISTINCT added.tenant_id, added.schedule_id FROM added
    JOIN lodger_schedules s ON s.tenant_id = added.tenant_id AND s.id = added.schedule_id
    WHERE added.revision > s.revision ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
"""  # noqa: S608 - names of ours
_SERVER = (
    f"CREATE TRIGGER {TRIGGER} AFTER INSERT ON lodger_schedule_revisions REFERENCING NEW TABLE AS added "
    f"FOR EACH STATEMENT EXECUTE FUNCTION {TRIGGER}()"
)


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        TABLE,
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("schedule_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "schedule_id"],
            ["lodger_schedules.tenant_id", "lodger_schedules.id"],
            name="fk_lodger_adoptions_tenant_id_schedule_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "schedule_id", name="pk_lodger_adoptions"),
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute(_SQLITE)
        return
    op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY lodger_engine ON {TABLE} USING (current_user <> 'lodger_script')")
    op.execute(_FUNCTION)
    op.execute(_SERVER)


def downgrade() -> None:
    """Downgrade the schema."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"DROP TRIGGER {TRIGGER}")
    else:
        op.execute(f"DROP TRIGGER {TRIGGER} ON lodger_schedule_revisions")
        op.execute(f"DROP FUNCTION {TRIGGER}()")
    op.drop_table(TABLE)

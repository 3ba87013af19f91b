"""Alert rules and alerts, a trigger that records actions without success, and the style of webhooks."""

import sqlalchemy as sa
from alembic import op

revision = "0120"
down_revision = "0116"
branch_labels = None
depends_on = None

TABLES = ("lodger_alert_rules", "lodger_alert_queue", "lodger_alerts")
NAME = "lodger_actions_alert"
ID = sa.String(length=36).with_variant(sa.UUID(as_uuid=False), "postgresql")
#: Successful actions are not among them, so that the trigger costs them one comparison.
_ENDED = "NEW.state IN ('failed', 'skipped', 'expired')"
_EVENTS = {"insert": ("INSERT", _ENDED), "update": ("UPDATE OF state", f"{_ENDED} AND OLD.state <> NEW.state")}
_QUEUED = (
    "INSERT INTO lodger_alert_queue (tenant_id, action_id, kind) VALUES (NEW.tenant_id, NEW.id, 'ended') "
    "ON CONFLICT DO NOTHING"
)
_WATCHED = "EXISTS (SELECT 1 FROM lodger_alert_rules WHERE tenant_id = NEW.tenant_id)"


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "lodger_alert_rules",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("schedule_id", ID, nullable=True),
        sa.Column("kinds", sa.Text(), nullable=False),
        sa.Column("mail", sa.Text(), nullable=False),
        sa.Column("webhooks", sa.Text(), nullable=False),
        sa.Column("quiet", sa.Text(), nullable=False),
        sa.Column("zone", sa.String(length=64), nullable=False),
        sa.Column("late_s", sa.Integer(), nullable=False),
        sa.Column("overran_s", sa.Integer(), nullable=True),
        sa.Column("silent_s", sa.Integer(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "name", name="pk_lodger_alert_rules"),
    )
    op.create_table(
        "lodger_alert_queue",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("action_id", ID, nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("details", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "action_id", "kind", name="pk_lodger_alert_queue"),
    )
    op.create_table(
        "lodger_alerts",
        sa.Column("tenant_id", sa.String(length=200), nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("rule", sa.String(length=63), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("schedule_id", ID, nullable=True),
        sa.Column("action_id", ID, nullable=True),
        sa.Column("subject", sa.String(length=32), server_default="", nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("occurrences", sa.Integer(), server_default="1", nullable=False),
        sa.Column("opened_us", sa.BigInteger(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("closed_us", sa.BigInteger(), nullable=True),
        sa.Column("sent_us", sa.BigInteger(), nullable=True),
        sa.Column("message", sa.String(length=36), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_lodger_alerts"),
    )
    op.add_column(
        "lodger_webhooks", sa.Column("style", sa.String(length=16), server_default="standard", nullable=False)
    )
    if op.get_bind().dialect.name == "sqlite":
        for name, (event, ended) in _EVENTS.items():
            op.execute(
                f"CREATE TRIGGER {NAME}_{name} AFTER {event} ON lodger_actions WHEN {ended} AND {_WATCHED} "
                f"BEGIN {_QUEUED}; END"
            )
        return
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY lodger_engine ON {table} USING (current_user <> 'lodger_script')")
    # With the rights of the tables' owner: writers need no privilege on the queue.
    op.execute(
        f"CREATE FUNCTION {NAME}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS "
        f"$$ BEGIN IF {_WATCHED} THEN {_QUEUED}; END IF; RETURN NULL; END $$"
    )
    for name, (event, ended) in _EVENTS.items():
        op.execute(
            f"CREATE TRIGGER {NAME}_{name} AFTER {event} ON lodger_actions FOR EACH ROW WHEN ({ended}) "
            f"EXECUTE FUNCTION {NAME}()"
        )


def downgrade() -> None:
    """Downgrade the schema; rules and alerts are deleted."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    for name in _EVENTS:
        op.execute(f"DROP TRIGGER {NAME}_{name}" + ("" if sqlite else " ON lodger_actions"))
    if not sqlite:
        op.execute(f"DROP FUNCTION {NAME}()")
    op.drop_column("lodger_webhooks", "style")
    for table in reversed(TABLES):
        op.drop_table(table)

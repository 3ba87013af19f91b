"""Origin ``change`` of runs on changes, and the last change for which each followed set requested a run."""

import sqlalchemy as sa
from alembic import op

revision = "0111"
down_revision = "0110"
branch_labels = None
depends_on = None

_BEFORE = "origin IN ('slot', 'backfill', 'run_now', 'replay', 'once')"
_AFTER = "origin IN ('slot', 'backfill', 'run_now', 'replay', 'once', 'change')"
_NAME = "ck_lodger_actions_origin"


def upgrade() -> None:
    """Upgrade the schema."""
    with op.batch_alter_table("lodger_followers") as followers:
        followers.add_column(sa.Column("woken_xid", sa.BigInteger(), nullable=True))
        followers.add_column(sa.Column("woken_seq", sa.BigInteger(), nullable=True))
    _constrain(_BEFORE, _AFTER)


def downgrade() -> None:
    """Downgrade the schema; runs on changes become runs by request."""
    op.execute("UPDATE lodger_actions SET origin = 'run_now' WHERE origin = 'change'")
    _constrain(_AFTER, _BEFORE)
    with op.batch_alter_table("lodger_followers") as followers:
        followers.drop_column("woken_seq")
        followers.drop_column("woken_xid")


def _constrain(before: str, after: str) -> None:
    """Replace the constraint."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        op.execute(f"ALTER TABLE lodger_actions DROP CONSTRAINT {_NAME}")
        op.execute(f"ALTER TABLE lodger_actions ADD CONSTRAINT {_NAME} CHECK ({after})")
        return
    # As https://www.sqlite.org/lang_altertable.html#otheralter says of constraints: the largest table need not be
    # copied.
    version = connection.scalar(sa.text("PRAGMA schema_version"))
    op.execute("PRAGMA writable_schema = ON")
    statement = sa.text("UPDATE sqlite_master SET sql = replace(sql, :before, :after) WHERE name = 'lodger_actions'")
    changed = connection.execute(statement, {"before": before, "after": after}).rowcount
    assert changed == 1
    op.execute(f"PRAGMA schema_version = {int(version or 0) + 1}")
    op.execute("PRAGMA writable_schema = OFF")

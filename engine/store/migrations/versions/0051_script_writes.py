"""On PostgreSQL: scripts' keys and documents are also written as their role, which row-level security restricts to one tenant."""

from alembic import op

revision = "0051"
down_revision = "0061"
branch_labels = None
depends_on = None

TABLES = ("lodger_kv", "lodger_documents")
_MINE = "tenant_id = current_setting('lodger.tenant', true)"


def _each_way(verb: str, link: str) -> None:
    op.execute(
        f"""
        DO $$ BEGIN
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'lodger_script') THEN
                {verb} INSERT, UPDATE, DELETE ON lodger_kv, lodger_documents {link} lodger_script;
            END IF;
        END $$
        """
    )


def upgrade() -> None:
    """Upgrade the schema."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in TABLES:
        op.execute(f"DROP POLICY lodger_tenant ON {table}")
        op.execute(f"CREATE POLICY lodger_tenant ON {table} USING ({_MINE}) WITH CHECK ({_MINE})")
    _each_way("GRANT", "TO")


def downgrade() -> None:
    """Downgrade the schema."""
    if op.get_bind().dialect.name != "postgresql":
        return
    _each_way("REVOKE", "FROM")
    for table in TABLES:
        op.execute(f"DROP POLICY lodger_tenant ON {table}")
        op.execute(f"CREATE POLICY lodger_tenant ON {table} FOR SELECT USING ({_MINE})")

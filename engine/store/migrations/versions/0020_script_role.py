"""On PostgreSQL: a role for scripts' queries, which sees one tenant's keys and documents and no other data of Lodger."""

from alembic import op

revision = "0020"
down_revision = "0010"
branch_labels = None
depends_on = None

TABLES = ("lodger_kv", "lodger_documents")


def upgrade() -> None:
    """Upgrade the schema."""
    if op.get_bind().dialect.name != "postgresql":
        return
    # Roles belong to the whole server: another database may have created it, and this user may lack the privilege.
    # Without the role queries are separated by their own conditions alone, and the engine reports it.
    op.execute(
        """
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lodger_script') THEN
                BEGIN
                    CREATE ROLE lodger_script NOLOGIN NOINHERIT;
                EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
                END;
            END IF;
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'lodger_script') THEN
                IF NOT pg_has_role(current_user, 'lodger_script', 'MEMBER') THEN
                    BEGIN
                        GRANT lodger_script TO CURRENT_USER;
                    EXCEPTION WHEN insufficient_privilege OR invalid_grant_operation THEN NULL;
                    END;
                END IF;
                EXECUTE format('GRANT USAGE ON SCHEMA %I TO lodger_script', current_schema());
                GRANT SELECT ON lodger_kv, lodger_documents TO lodger_script;
            END IF;
        END $$
        """
    )
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        # A missing setting matches no tenant.
        op.execute(
            f"CREATE POLICY lodger_tenant ON {table} FOR SELECT USING (tenant_id = current_setting('lodger.tenant', true))"
        )
        # An engine that does not own the tables uses its grants, as on every other table.
        op.execute(f"CREATE POLICY lodger_engine ON {table} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Downgrade the schema; the role stays, because other databases may use it."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in TABLES:
        op.execute(f"DROP POLICY lodger_engine ON {table}")
        op.execute(f"DROP POLICY lodger_tenant ON {table}")
        op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    op.execute(
        """
        DO $$ BEGIN
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'lodger_script') THEN
                REVOKE SELECT ON lodger_kv, lodger_documents FROM lodger_script;
            END IF;
        END $$
        """
    )

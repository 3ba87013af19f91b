"""On PostgreSQL: a role for scripts' questions, which sees one tenant's keys and documents and nothing else of Lodger's."""

from alembic import op

revision = "0020"
down_revision = "0010"
branch_labels = None
depends_on = None

TABLES = ("lodger_kv", "lodger_documents")


def upgrade() -> None:
    """Go forward."""
    if op.get_bind().dialect.name != "postgresql":
        return
    # Roles belong to the whole server: another database may have made it, and this user may not be allowed to. Without
    # the role questions are kept apart by their own conditions alone, and the engine says so.
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
        # A setting that is absent names nobody.
        op.execute(
            f"CREATE POLICY lodger_tenant ON {table} FOR SELECT USING (tenant_id = current_setting('lodger.tenant', true))"
        )
        # An engine that is not the tables' owner goes by its grants, as on every other table.
        op.execute(f"CREATE POLICY lodger_engine ON {table} USING (current_user <> 'lodger_script')")


def downgrade() -> None:
    """Go back; the role stays, because it is not this database's alone."""
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

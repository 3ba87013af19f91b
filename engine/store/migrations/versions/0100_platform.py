"""The append-only audit log; tokens, sessions, responses to idempotent requests, signing keys."""

import secrets

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0100"
down_revision = "0060"
branch_labels = None
depends_on = None

#: A row may only be deleted with its tenant, after that is marked as deleted.
_GONE = "coalesce((SELECT state FROM lodger_tenants WHERE id = OLD.tenant_id), '') = 'deleted'"
_SAID = "the audit log is append-only"


def ident() -> sa.types.TypeEngine[str]:
    """Return the type of ids; each column needs its own."""
    return sa.String(36).with_variant(postgresql.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "lodger_audit",
        sa.Column("tenant_id", sa.String(200), nullable=False),
        sa.Column("id", ident(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.Column("via", sa.String(16), nullable=False),
        sa.Column("verb", sa.String(64), nullable=False),
        sa.Column("target", sa.String(200), nullable=False),
        sa.Column("named", sa.String(200), nullable=True),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.Column("why", sa.Text(), nullable=True),
        sa.Column("request_id", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_lodger_audit"),
    )
    op.create_index("ix_lodger_audit_id", "lodger_audit", ["id"])
    op.create_index("ix_lodger_audit_target", "lodger_audit", ["tenant_id", "target", "id"])
    op.create_table(
        "lodger_tokens",
        sa.Column("id", ident(), nullable=False),
        sa.Column("tenant_id", sa.String(200), nullable=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("prefix", sa.String(32), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(200), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=True),
        sa.Column("revoked_us", sa.BigInteger(), nullable=True),
        sa.Column("used_us", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("role IN ('admin', 'operator', 'editor', 'viewer')", name="ck_lodger_tokens_role"),
        sa.CheckConstraint("(tenant_id IS NULL) = (role IN ('admin', 'operator'))", name="ck_lodger_tokens_scope"),
        sa.PrimaryKeyConstraint("id", name="pk_lodger_tokens"),
        sa.UniqueConstraint("prefix", name="uq_lodger_tokens_prefix"),
    )
    op.create_index("ix_lodger_tokens_tenant_id", "lodger_tokens", ["tenant_id"])
    op.create_table(
        "lodger_sessions",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("token_id", ident(), nullable=False),
        sa.Column("tenant_id", sa.String(200), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.Column("seen_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_lodger_sessions"),
    )
    op.create_index("ix_lodger_sessions_token_id", "lodger_sessions", ["token_id"])
    op.create_index("ix_lodger_sessions_expires_us", "lodger_sessions", ["expires_us"])
    op.create_table(
        "lodger_answers",
        sa.Column("token_id", ident(), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("tenant_id", sa.String(200), nullable=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("token_id", "key", name="pk_lodger_answers"),
    )
    op.create_index("ix_lodger_answers_created_us", "lodger_answers", ["created_us"])
    keys = op.create_table(
        "lodger_keys",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("secret", sa.LargeBinary(64), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_lodger_keys"),
    )
    op.bulk_insert(keys, [{"name": "signing", "secret": secrets.token_bytes(32)}])
    _guard()


def _guard() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER lodger_audit_kept BEFORE UPDATE ON lodger_audit BEGIN SELECT RAISE(ABORT, '{_SAID}'); END"
        )
        op.execute(
            f"CREATE TRIGGER lodger_audit_stays BEFORE DELETE ON lodger_audit WHEN NOT {_GONE} "
            f"BEGIN SELECT RAISE(ABORT, '{_SAID}'); END"
        )
        # REPLACE removes the conflicting row without firing the trigger of a deletion.
        op.execute(
            "CREATE TRIGGER lodger_audit_new BEFORE INSERT ON lodger_audit "
            "WHEN EXISTS (SELECT 1 FROM lodger_audit WHERE tenant_id = NEW.tenant_id AND id = NEW.id) "
            "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
        )
        return
    op.execute(
        f"""
        CREATE FUNCTION lodger_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'DELETE' THEN
                IF {_GONE} THEN RETURN OLD; END IF;
            END IF;
            RAISE EXCEPTION '{_SAID}' USING ERRCODE = 'restrict_violation';
        END $$
        """
    )
    op.execute(
        "CREATE TRIGGER lodger_audit_kept BEFORE UPDATE OR DELETE ON lodger_audit "
        "FOR EACH ROW EXECUTE FUNCTION lodger_audit_refuse()"
    )
    op.execute(
        "CREATE TRIGGER lodger_audit_stays BEFORE TRUNCATE ON lodger_audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION lodger_audit_refuse()"
    )


def downgrade() -> None:
    """Downgrade the schema; the log is deleted."""
    for table in ("lodger_keys", "lodger_answers", "lodger_sessions", "lodger_tokens", "lodger_audit"):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION lodger_audit_refuse()")

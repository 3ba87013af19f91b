"""Tables of the platform: audit log, tokens, sessions, sign-in codes, idempotent responses, signing keys, running log lines."""

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from lodger.engine.core.access.roles import OF_PLATFORM, Role
from lodger.engine.store.drivers.expressions import Id
from lodger.engine.store.drivers.guards import Churn, Stored, guards
from lodger.engine.store.schema.metadata import metadata, table_of_tenants
from lodger.engine.store.schema.scheduling import Name, Us


def _in_roles(roles: Iterable[Role]) -> str:
    """Return the SQL condition that a column ``role`` is one of these roles."""
    return "role IN ({})".format(", ".join(sorted(f"'{role.value}'" for role in roles)))


#: Every change, with the state before and after it. Triggers refuse to change or delete a row; rows
#: are deleted only with their tenant. ``tenant_id`` "" is the platform's own.
audit = table_of_tenants(
    "lodger_audit",
    Column("id", Id, primary_key=True),
    Column("at_us", Us, nullable=False),
    Column("actor", Name, nullable=False),
    Column("via", String(16), nullable=False),
    # noun.verb, such as schedules.pause
    Column("verb", String(64), nullable=False),
    Column("target", Name, nullable=False),
    # Name of the target, if ``target`` is an id.
    Column("named", Name),
    Column("before", Text),
    Column("after", Text),
    Column("why", Text),
    Column("request_id", String(64)),
    Index("ix_lodger_audit_id", "id"),
    Index("ix_lodger_audit_target", "tenant_id", "target", "id"),
    info=guards(
        stored=Stored("audit_bytes", ("before", "after", "why")),
        churn=Churn.GROWING,
        append_only="coalesce((SELECT state FROM lodger_tenants WHERE id = OLD.tenant_id), '') = 'deleted'",
    ),
)

#: Bearer tokens; only a hash of the secret is stored.
tokens = Table(
    "lodger_tokens",
    metadata,
    Column("id", Id, primary_key=True),
    # None: a token of the platform.
    Column("tenant_id", Name),
    Column("name", Name, nullable=False),
    Column("role", String(16), nullable=False),
    # The public first characters of the token, by which it is found.
    Column("prefix", String(32), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_us", Us, nullable=False),
    Column("created_by", Name, nullable=False),
    Column("expires_us", Us),
    Column("revoked_us", Us),
    Column("used_us", Us),
    # 1: a copy of a token of the first of several ledgers, which counts only where that one cannot be reached.
    Column("copied", SmallInteger, nullable=False, server_default="0"),
    UniqueConstraint("prefix"),
    Index("ix_lodger_tokens_tenant_id", "tenant_id"),
    CheckConstraint(_in_roles(Role), name="role"),
    CheckConstraint(f"(tenant_id IS NULL) = ({_in_roles(OF_PLATFORM)})", name="scope"),
)

#: Browser sessions. Those that were begun with a token end with it. The id is stored as a hash, like a token.
sessions = Table(
    "lodger_sessions",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("token_id", Id, nullable=False),
    Column("tenant_id", Name),
    Column("created_us", Us, nullable=False),
    Column("expires_us", Us, nullable=False),
    Column("seen_us", Us, nullable=False),
    # The caller and the ID token of a session that was begun without a token.
    Column("name", Name),
    Column("role", String(16)),
    Column("id_token", Text),
    Index("ix_lodger_sessions_token_id", "token_id"),
    Index("ix_lodger_sessions_expires_us", "expires_us"),
)

#: Codes of one-time sign-in links, each of which begins a session of its token, or of the caller that it names; and the states of
#: sign-ins that were completed, so that none is completed twice. Stored as a hash; no cookie is looked up here.
sign_in_codes = Table(
    "lodger_sign_in_codes",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("token_id", Id),
    Column("tenant_id", Name),
    Column("name", Name),
    Column("role", String(16)),
    Column("expires_us", Us, nullable=False),
)

#: Responses to requests with an idempotency key, written in the transaction of the change itself.
answers = Table(
    "lodger_answers",
    metadata,
    # Id of the token that the key belongs to.
    Column("token_id", Id, primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("tenant_id", Name),
    # Digest of the method, the path and the body.
    Column("digest", String(64), nullable=False),
    Column("status", SmallInteger, nullable=False),
    # JSON object: ETag and Location.
    Column("headers", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Index("ix_lodger_answers_created_us", "created_us"),
)

#: Secrets of this ledger by purpose, such as the signing key that every process shares.
keys = Table(
    "lodger_keys",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("secret", LargeBinary(64), nullable=False),
)

#: Log lines of running attempts, in batches, see :mod:`lodger.engine.store.lifecycle.running_lines`.
running_lines = table_of_tenants(
    "lodger_running_lines",
    Column("action_id", Id, primary_key=True),
    Column("step", SmallInteger, primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    # A JSON list of [level, text, us].
    Column("lines", Text, nullable=False),
    Column("written_us", Us, nullable=False),
    ForeignKeyConstraint(
        ["tenant_id", "action_id"], ["lodger_actions.tenant_id", "lodger_actions.id"], ondelete="CASCADE"
    ),
)

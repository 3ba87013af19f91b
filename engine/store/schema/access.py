"""Tables of the platform: audit log, tokens, sessions, sign-in codes, idempotent responses, signing keys, running log lines."""

from collections.abc import Iterable

import sqlalchemy as sa

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
    sa.Column("id", Id, primary_key=True),
    sa.Column("at_us", Us, nullable=False),
    sa.Column("actor", Name, nullable=False),
    sa.Column("via", sa.String(16), nullable=False),
    # noun.verb, such as schedules.pause
    sa.Column("verb", sa.String(64), nullable=False),
    sa.Column("target", Name, nullable=False),
    # Name of the target, if ``target`` is an id.
    sa.Column("named", Name),
    sa.Column("before", sa.Text),
    sa.Column("after", sa.Text),
    sa.Column("why", sa.Text),
    sa.Column("request_id", sa.String(64)),
    sa.Index("ix_lodger_audit_id", "id"),
    sa.Index("ix_lodger_audit_target", "tenant_id", "target", "id"),
    info=guards(
        stored=Stored("audit_bytes", ("before", "after", "why")),
        churn=Churn.GROWING,
        append_only="coalesce((SELECT state FROM lodger_tenants WHERE id = OLD.tenant_id), '') = 'deleted'",
    ),
)

#: Bearer tokens; only a hash of the secret is stored.
tokens = sa.Table(
    "lodger_tokens",
    metadata,
    sa.Column("id", Id, primary_key=True),
    # None: a token of the platform.
    sa.Column("tenant_id", Name),
    sa.Column("name", Name, nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    # The public first characters of the token, by which it is found.
    sa.Column("prefix", sa.String(32), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("created_us", Us, nullable=False),
    sa.Column("created_by", Name, nullable=False),
    sa.Column("expires_us", Us),
    sa.Column("revoked_us", Us),
    sa.Column("used_us", Us),
    # 1: a copy of a token of the first of several ledgers, which counts only where that one cannot be reached.
    sa.Column("copied", sa.SmallInteger, nullable=False, server_default="0"),
    sa.UniqueConstraint("prefix"),
    sa.Index("ix_lodger_tokens_tenant_id", "tenant_id"),
    sa.CheckConstraint(_in_roles(Role), name="role"),
    sa.CheckConstraint(f"(tenant_id IS NULL) = ({_in_roles(OF_PLATFORM)})", name="scope"),
)

#: Browser sessions. Those that were begun with a token end with it. The id is stored as a hash, like a token.
sessions = sa.Table(
    "lodger_sessions",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("token_id", Id, nullable=False),
    sa.Column("tenant_id", Name),
    sa.Column("created_us", Us, nullable=False),
    sa.Column("expires_us", Us, nullable=False),
    sa.Column("seen_us", Us, nullable=False),
    # The caller and the ID token of a session that was begun without a token.
    sa.Column("name", Name),
    sa.Column("role", sa.String(16)),
    sa.Column("id_token", sa.Text),
    sa.Index("ix_lodger_sessions_token_id", "token_id"),
    sa.Index("ix_lodger_sessions_expires_us", "expires_us"),
)

#: Codes of one-time sign-in links, each of which begins a session of its token, or of the caller that it names; and the states of
#: sign-ins that were completed, so that none is completed twice. Stored as a hash; no cookie is looked up here.
sign_in_codes = sa.Table(
    "lodger_sign_in_codes",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("token_id", Id),
    sa.Column("tenant_id", Name),
    sa.Column("name", Name),
    sa.Column("role", sa.String(16)),
    sa.Column("expires_us", Us, nullable=False),
)

#: Responses to requests with an idempotency key, written in the transaction of the change itself.
answers = sa.Table(
    "lodger_answers",
    metadata,
    # Id of the token that the key belongs to.
    sa.Column("token_id", Id, primary_key=True),
    sa.Column("key", sa.String(200), primary_key=True),
    sa.Column("tenant_id", Name),
    # Digest of the method, the path and the body.
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("status", sa.SmallInteger, nullable=False),
    # JSON object: ETag and Location.
    sa.Column("headers", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Index("ix_lodger_answers_created_us", "created_us"),
)

#: Secrets of this ledger by purpose, such as the signing key that every process shares.
keys = sa.Table(
    "lodger_keys",
    metadata,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("secret", sa.LargeBinary(64), nullable=False),
)

#: Log lines of running attempts, in batches, see :mod:`lodger.engine.store.lifecycle.running_lines`.
running_lines = table_of_tenants(
    "lodger_running_lines",
    sa.Column("action_id", Id, primary_key=True),
    sa.Column("step", sa.SmallInteger, primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    # A JSON list of [level, text, us].
    sa.Column("lines", sa.Text, nullable=False),
    sa.Column("written_us", Us, nullable=False),
    sa.ForeignKeyConstraint(
        ["tenant_id", "action_id"], ["lodger_actions.tenant_id", "lodger_actions.id"], ondelete="CASCADE"
    ),
)

"""Tables of script data in Lodger's own database: keyed values, documents, outbox, sealed commits, secrets, indexes."""

import sqlalchemy as sa

from lodger.engine.store.drivers.expressions import Id, code_points
from lodger.engine.store.drivers.guards import Churn, ScriptAccess, Stored, guards
from lodger.engine.store.schema import feeds
from lodger.engine.store.schema.metadata import SEALED, table_of_tenants

#: JSON text under a key; scope "" is the tenant's, others are schedule ids. ``expires_us`` None means never.
kv = table_of_tenants(
    "lodger_kv",
    sa.Column("scope", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(512), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("expires_us", sa.BigInteger),
    sa.Column("updated_us", sa.BigInteger, nullable=False),
    info=guards(stored=Stored("kept_bytes", ("key", "value"), updated=True), scripts=ScriptAccess(), churn=Churn.HOT),
)

#: Documents of collections; ``body`` is the JSON text in wire form, without the id.
documents = table_of_tenants(
    "lodger_documents",
    sa.Column("collection", sa.String(64), primary_key=True),
    sa.Column("id", sa.String(200), primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("updated_us", sa.BigInteger, nullable=False),
    info=guards(stored=Stored("kept_bytes", ("id", "body"), updated=True), scripts=ScriptAccess()),
)

#: Mails and webhooks of committed steps; ``n`` is the effect's number in its step, ``target`` the webhook's name. One
#: row is one mail or one webhook message.
outbox = table_of_tenants(
    "lodger_outbox",
    sa.Column("id", sa.String(80), primary_key=True),
    sa.Column("action_id", sa.String(36), nullable=False),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("n", sa.Integer, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("target", sa.String(63), nullable=False, server_default=""),
    sa.Column("message_id", sa.String(200), nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_at_us", sa.BigInteger),
    sa.Column("last_error", sa.Text),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("sent_us", sa.BigInteger),
    sa.UniqueConstraint("tenant_id", "action_id", "step", "n", "target", name="uq_lodger_outbox_effect"),
    sa.CheckConstraint("state IN ('queued', 'sending', 'sent', 'failed')", name="state"),
    sa.CheckConstraint("(state IN ('queued', 'sending')) = (next_at_us IS NOT NULL)", name="due"),
    sa.Index("ix_lodger_outbox_due", "state", "next_at_us"),
    sa.Index("ix_lodger_outbox_lane", "kind", "tenant_id", "target", "state", "next_at_us"),
    info=guards(stored=Stored("history_bytes", ("payload",)), churn=Churn.HOT),
)

#: Sealed attempts: they have succeeded, and their effects in a platform's own database are being applied. ``docket`` is
#: the write set of that database and ``own`` the ledger's (:mod:`lodger.engine.effects.write_set_codec`), ``ended`` the
#: attempt's end as JSON. A process reserves the next try by moving ``next_us``.
sealed = table_of_tenants(
    "lodger_sealed",
    sa.Column("action_id", Id, primary_key=True),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("docket", sa.Text, nullable=False),
    sa.Column("own", sa.Text, nullable=False),
    sa.Column("ended", sa.Text, nullable=False),
    sa.Column("sealed_us", sa.BigInteger, nullable=False),
    sa.Column("next_us", sa.BigInteger, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("last_error", sa.Text),
    sa.Index("ix_lodger_sealed_next", "next_us"),
    info=guards(stored=Stored("kept_bytes", ("docket", "own"))),
)

#: Keys, documents and cursors that a sealed attempt will write; locked for other attempts until then.
holds = table_of_tenants(
    "lodger_holds",
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("scope", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(512), primary_key=True),
    sa.Column("action_id", Id, nullable=False),
    sa.Index("ix_lodger_holds_action", "action_id"),
)

#: Responses to HTTP requests of a step that is repeated; ``key`` identifies the request, ``body`` is deflated.
fetches = table_of_tenants(
    "lodger_fetches",
    sa.Column("action_id", Id, primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

#: Encrypted values (:mod:`lodger.engine.vault.vault`), bound to tenant, name and hosts; hosts are a JSON list.
secrets = table_of_tenants(
    "lodger_secrets",
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("hosts", sa.Text, nullable=False),
    sa.Column("key_id", sa.String(32), nullable=False),
    sa.Column("sealed", sa.Text, nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("updated_us", sa.BigInteger, nullable=False),
    sa.Index("ix_lodger_secrets_key", "key_id"),
    info={SEALED: lambda row: (row["tenant_id"], row["name"], row["hosts"])},
)

#: Indexed paths of collections, by tenant. ``upto`` is the position of the build over existing documents; queries use
#: an index only when it is complete.
collection_indexes = table_of_tenants(
    "lodger_collection_indexes",
    sa.Column("collection", sa.String(64), primary_key=True),
    sa.Column("path", sa.String(520), primary_key=True),
    sa.Column("complete", sa.SmallInteger, nullable=False),
    sa.Column("upto", sa.String(200), nullable=False),
    sa.Column("made_us", sa.BigInteger, nullable=False),
    info=guards(scripts=ScriptAccess("SELECT")),
)

#: The value at an indexed path of each document: its type rank and value, for text its beginning. Compared by code
#: point.
document_index = table_of_tenants(
    "lodger_document_index",
    sa.Column("collection", sa.String(64), primary_key=True),
    sa.Column("path", sa.String(520), primary_key=True),
    sa.Column("id", sa.String(200), primary_key=True),
    sa.Column("rank", sa.SmallInteger, nullable=False),
    sa.Column("number", sa.Double),
    sa.Column("words", code_points(200)),
    sa.Index("ix_lodger_document_index_number", "tenant_id", "collection", "path", "rank", "number"),
    sa.Index("ix_lodger_document_index_words", "tenant_id", "collection", "path", "rank", "words"),
    info=guards(scripts=ScriptAccess()),
)

#: Reservations of a tenant's day budgets by running attempts (:mod:`lodger.engine.store.usage.budget_reservations`).
reservations = table_of_tenants(
    "lodger_lots",
    sa.Column("action_id", Id, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("budget", sa.String(32), primary_key=True),
    sa.Column("day", sa.Integer, primary_key=True),
    sa.Column("amount", sa.BigInteger, nullable=False),
)

#: Bytes that each tenant uses; triggers count them (:class:`~lodger.engine.store.drivers.guards.Stored`).
storage = table_of_tenants(
    "lodger_storage",
    sa.Column("kept_bytes", sa.BigInteger, nullable=False),
    sa.Column("history_bytes", sa.BigInteger, nullable=False),
    sa.Column("audit_bytes", sa.BigInteger, nullable=False, server_default="0"),
    info=guards(churn=Churn.HOT),
)

#: All tables that scripts need in a database without a ledger; wings append theirs.
TABLES = [
    kv, documents, collection_indexes, document_index, outbox, sealed, holds, feeds.changes, feeds.forgotten, feeds.cursors,
]  # fmt: skip

"""Tables of script data in Lodger's own database: keyed values, documents, outbox, sealed commits, secrets, indexes."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
)

from lodger.engine.store.drivers.expressions import Id, code_points
from lodger.engine.store.drivers.guards import Churn, ScriptAccess, Stored, guards
from lodger.engine.store.schema import feeds
from lodger.engine.store.schema.metadata import SEALED, table_of_tenants

#: JSON text under a key; scope "" is the tenant's, others are schedule ids. ``expires_us`` None means never.
kv = table_of_tenants(
    "lodger_kv",
    Column("scope", String(64), primary_key=True),
    Column("key", String(512), primary_key=True),
    Column("value", Text, nullable=False),
    Column("expires_us", BigInteger),
    Column("updated_us", BigInteger, nullable=False),
    info=guards(stored=Stored("kept_bytes", ("key", "value"), updated=True), scripts=ScriptAccess(), churn=Churn.HOT),
)

#: Documents of collections; ``body`` is the JSON text in wire form, without the id.
documents = table_of_tenants(
    "lodger_documents",
    Column("collection", String(64), primary_key=True),
    Column("id", String(200), primary_key=True),
    Column("body", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    info=guards(stored=Stored("kept_bytes", ("id", "body"), updated=True), scripts=ScriptAccess()),
)

#: Mails and webhooks of committed steps; ``n`` is the effect's number in its step, ``target`` the webhook's name. One
#: row is one mail or one webhook message.
outbox = table_of_tenants(
    "lodger_outbox",
    Column("id", String(80), primary_key=True),
    Column("action_id", String(36), nullable=False),
    Column("step", Integer, nullable=False),
    Column("n", Integer, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("target", String(63), nullable=False, server_default=""),
    Column("message_id", String(200), nullable=False),
    Column("payload", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at_us", BigInteger),
    Column("last_error", Text),
    Column("created_us", BigInteger, nullable=False),
    Column("sent_us", BigInteger),
    UniqueConstraint("tenant_id", "action_id", "step", "n", "target", name="uq_lodger_outbox_effect"),
    CheckConstraint("state IN ('queued', 'sending', 'sent', 'failed')", name="state"),
    CheckConstraint("(state IN ('queued', 'sending')) = (next_at_us IS NOT NULL)", name="due"),
    Index("ix_lodger_outbox_due", "state", "next_at_us"),
    Index("ix_lodger_outbox_lane", "kind", "tenant_id", "target", "state", "next_at_us"),
    info=guards(stored=Stored("history_bytes", ("payload",)), churn=Churn.HOT),
)

#: Sealed attempts: they have succeeded, and their effects in a platform's own database are being applied. ``docket`` is
#: the write set of that database and ``own`` the ledger's (:mod:`lodger.engine.effects.write_set_codec`), ``ended`` the
#: attempt's end as JSON. A process reserves the next try by moving ``next_us``.
sealed = table_of_tenants(
    "lodger_sealed",
    Column("action_id", Id, primary_key=True),
    Column("step", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("docket", Text, nullable=False),
    Column("own", Text, nullable=False),
    Column("ended", Text, nullable=False),
    Column("sealed_us", BigInteger, nullable=False),
    Column("next_us", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("last_error", Text),
    Index("ix_lodger_sealed_next", "next_us"),
    info=guards(stored=Stored("kept_bytes", ("docket", "own"))),
)

#: Keys, documents and cursors that a sealed attempt will write; locked for other attempts until then.
holds = table_of_tenants(
    "lodger_holds",
    Column("kind", String(16), primary_key=True),
    Column("scope", String(64), primary_key=True),
    Column("key", String(512), primary_key=True),
    Column("action_id", Id, nullable=False),
    Index("ix_lodger_holds_action", "action_id"),
)

#: Responses to HTTP requests of a step that is repeated; ``key`` identifies the request, ``body`` is deflated.
fetches = table_of_tenants(
    "lodger_fetches",
    Column("action_id", Id, primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("answer", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

#: Encrypted values (:mod:`lodger.engine.vault.vault`), bound to tenant, name and hosts; hosts are a JSON list.
secrets = table_of_tenants(
    "lodger_secrets",
    Column("name", String(63), primary_key=True),
    Column("hosts", Text, nullable=False),
    Column("key_id", String(32), nullable=False),
    Column("sealed", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    Index("ix_lodger_secrets_key", "key_id"),
    info={SEALED: lambda row: ((row["tenant_id"], row["name"], row["hosts"]), ("sealed",))},
)

#: Indexed paths of collections, by tenant. ``upto`` is the position of the build over existing documents; queries use
#: an index only when it is complete.
collection_indexes = table_of_tenants(
    "lodger_collection_indexes",
    Column("collection", String(64), primary_key=True),
    Column("path", String(520), primary_key=True),
    Column("complete", SmallInteger, nullable=False),
    Column("upto", String(200), nullable=False),
    Column("made_us", BigInteger, nullable=False),
    info=guards(scripts=ScriptAccess("SELECT")),
)

#: The value at an indexed path of each document: its type rank and value, for text its beginning. Compared by code
#: point.
document_index = table_of_tenants(
    "lodger_document_index",
    Column("collection", String(64), primary_key=True),
    Column("path", String(520), primary_key=True),
    Column("id", String(200), primary_key=True),
    Column("rank", SmallInteger, nullable=False),
    Column("number", Double),
    Column("words", code_points(200)),
    Index("ix_lodger_document_index_number", "tenant_id", "collection", "path", "rank", "number"),
    Index("ix_lodger_document_index_words", "tenant_id", "collection", "path", "rank", "words"),
    info=guards(scripts=ScriptAccess()),
)

#: Reservations of a tenant's day budgets by running attempts (:mod:`lodger.engine.store.usage.budget_reservations`).
reservations = table_of_tenants(
    "lodger_lots",
    Column("action_id", Id, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("budget", String(32), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("amount", BigInteger, nullable=False),
)

#: Bytes that each tenant uses; triggers count them (:class:`~lodger.engine.store.drivers.guards.Stored`).
storage = table_of_tenants(
    "lodger_storage",
    Column("kept_bytes", BigInteger, nullable=False),
    Column("history_bytes", BigInteger, nullable=False),
    Column("audit_bytes", BigInteger, nullable=False, server_default="0"),
    info=guards(churn=Churn.HOT),
)

#: All tables that scripts need in a database without a ledger; wings append theirs.
TABLES = [
    kv, documents, collection_indexes, document_index, outbox, sealed, holds, feeds.changes, feeds.forgotten, feeds.cursors,
]  # fmt: skip

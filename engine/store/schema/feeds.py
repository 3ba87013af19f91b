"""The change feed: what changed of exposed tables and collections, in an order in which nothing is ever overtaken.

A plain sequence loses rows: a transaction that takes number 7 may commit after one with number 8 was read past. So a change
carries the id of its transaction too; changes are ordered by (transaction, number), and read only up to the oldest
transaction that is still under way. SQLite has one writer: there the transaction is 0 and the number alone orders.
"""

from sqlalchemy import BigInteger, Column, Identity, Index, MetaData, String, Table, Text

from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.stores.expressions import Id, Number, transaction_number


def changes_table(of: MetaData) -> Table:
    """Declare the table of changes; one is in the ledger's database, one in each other that something is exposed of.

    ``source`` is ``table:NAME`` or ``collection:NAME``, ``owner`` the tenant as the table writes it, ``key`` the row's as text.
    """
    return Table(
        "lodger_changes",
        of,
        # Whoever reports a change needs no right but to insert: an identity's sequence asks for none of its own.
        Column("seq", Number, Identity(), primary_key=True),
        Column("xid", BigInteger, nullable=False, server_default=transaction_number()),
        Column("source", String(160), nullable=False),
        Column("owner", String(200), nullable=False),
        Column("key", Text, nullable=False),
        Column("kind", String(8), nullable=False),
        Column("at_us", BigInteger, nullable=False),
        # The consumer whose run made it: it is not told of what it did itself, or it would wake itself for ever.
        Column("made_by", String(64)),
        Index("ix_lodger_changes_feed", "source", "owner", "xid", "seq"),
        Index("ix_lodger_changes_order", "xid", "seq"),
        # A number that was deleted is never given again: a cursor may stand on it.
        sqlite_autoincrement=True,
    )


def forgotten_table(of: MetaData) -> Table:
    """Declare the table of what retention has taken: the last change of each feed that is not kept any more."""
    return Table(
        "lodger_changes_forgotten",
        of,
        Column("source", String(160), primary_key=True),
        Column("owner", String(200), primary_key=True),
        Column("xid", BigInteger, nullable=False),
        Column("seq", BigInteger, nullable=False),
    )


changes = changes_table(metadata)
forgotten = forgotten_table(metadata)

#: How far a consumer (a schedule, or a script that runs without one) has read a feed; moved only by the commit of a run.
cursors = Table(
    "lodger_cursors",
    metadata,
    Column("tenant_id", String(200), primary_key=True),
    Column("consumer", String(64), primary_key=True),
    Column("source", String(160), primary_key=True),
    Column("xid", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
)

#: Schedules that run on changes: which sets each is bound to, since when it was last bound or armed, and up to which change a run
#: was asked for; None when none was asked for since.
followers = Table(
    "lodger_followers",
    metadata,
    Column("tenant_id", String(200), primary_key=True),
    Column("schedule_id", Id, primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("bound_us", BigInteger, nullable=False),
    Column("woken_xid", BigInteger),
    Column("woken_seq", BigInteger),
    Index("ix_lodger_followers_name", "name", "tenant_id"),
    Index("ix_lodger_followers_bound", "bound_us"),
)

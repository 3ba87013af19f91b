"""The change feed: changes of exposed tables and collections, in an order in which none is ever skipped.

A plain sequence loses rows: a transaction with number 7 may commit after a reader has passed number 8. Therefore a
change also has the id of its transaction; changes are ordered by (transaction, number) and read only up to the oldest
unfinished transaction. SQLite has one writer: there the transaction is 0 and the number alone orders.
"""

from sqlalchemy import BigInteger, Column, ColumnElement, Identity, Index, MetaData, String, Table, Text

from lodger.engine.store.drivers.expressions import Id, Number, transaction_number
from lodger.engine.store.drivers.guards import ScriptAccess, guards
from lodger.engine.store.schema.metadata import metadata, table_of_tenants

_READ_BY_OWNER = ScriptAccess("SELECT", "owner", "lodger.owner")


def changes_table(of: MetaData) -> Table:
    """Declare the table of changes: one in the ledger's database, and one in each other database with exposed tables.

    ``source`` is ``table:NAME`` or ``collection:NAME``, ``owner`` the tenant's value in the table, ``key`` the row's
    key as text.
    """
    return Table(
        "lodger_changes",
        of,
        # Reporting a change needs the INSERT privilege only: an identity's sequence has none of its own.
        Column("seq", Number, Identity(), primary_key=True),
        Column("xid", BigInteger, nullable=False, server_default=transaction_number()),
        Column("source", String(160), nullable=False),
        Column("owner", String(200), nullable=False),
        Column("key", Text, nullable=False),
        Column("kind", String(8), nullable=False),
        Column("at_us", BigInteger, nullable=False),
        # The consumer that made the change in its run; it does not see its own changes, or it would trigger itself for
        # ever.
        Column("made_by", String(64)),
        Index("ix_lodger_changes_feed", "source", "owner", "xid", "seq"),
        Index("ix_lodger_changes_order", "xid", "seq"),
        # Numbers of deleted rows are never reused: a cursor may refer to one.
        sqlite_autoincrement=True,
        info=guards(scripts=_READ_BY_OWNER),
    )


def forgotten_table(of: MetaData) -> Table:
    """Declare the table of the last change of each feed that retention has deleted."""
    return Table(
        "lodger_changes_forgotten",
        of,
        Column("source", String(160), primary_key=True),
        Column("owner", String(200), primary_key=True),
        Column("xid", BigInteger, nullable=False),
        Column("seq", BigInteger, nullable=False),
        info=guards(scripts=_READ_BY_OWNER),
    )


def of_collections(table: Table, tenant_id: str) -> ColumnElement[bool]:
    """Return the SQL condition that a row of the feeds belongs to a collection of a tenant; exposed tables are the platform's."""
    return (table.c.owner == tenant_id) & table.c.source.startswith("collection:")


changes = changes_table(metadata)
forgotten = forgotten_table(metadata)

#: Position of a consumer (a schedule, or a script without one) in a feed; moved only by the commit of a run.
cursors = table_of_tenants(
    "lodger_cursors",
    Column("consumer", String(64), primary_key=True),
    Column("source", String(160), primary_key=True),
    Column("xid", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    info=guards(scripts=ScriptAccess("SELECT")),
)

#: Schedules that run on changes: the sets that each follows, when it was last bound or armed, and the last change for
#: which a run was requested since then (None if there is none).
followers = table_of_tenants(
    "lodger_followers",
    Column("schedule_id", Id, primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("bound_us", BigInteger, nullable=False),
    Column("woken_xid", BigInteger),
    Column("woken_seq", BigInteger),
    Index("ix_lodger_followers_name", "name", "tenant_id"),
    Index("ix_lodger_followers_bound", "bound_us"),
)

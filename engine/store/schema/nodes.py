"""Tables of the ledger itself, of nodes, their published metrics, and named locks."""

from sqlalchemy import CheckConstraint, Column, Integer, SmallInteger, String, Table, Text

from lodger.engine.store.drivers.expressions import Id
from lodger.engine.store.drivers.guards import Churn, guards
from lodger.engine.store.schema.metadata import metadata, table_of_tenants
from lodger.engine.store.schema.scheduling import Name, Us

#: One row about the ledger as a whole.
ledger = Table(
    "lodger_ledger",
    metadata,
    Column("one", SmallInteger, primary_key=True, autoincrement=False),
    # Another one after a restore from a backup: what is committed later did not follow what was lost.
    Column("identity", String(36), nullable=False),
    # The oldest revision of which the release can use this schema.
    Column("compatible_with", String(32), nullable=False),
    # Its name in the file of LODGER_LEDGERS by which it was first opened.
    Column("name", String(63)),
    CheckConstraint("one = 1", name="one"),
)

#: Names of the tables that processes have exposed, and when they last did: such a name is no collection on a node without the table.
sets = Table(
    "lodger_sets",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("seen_us", Us, nullable=False),
)

#: One lease per node, not per action. A node without a row, or with an old epoch, cannot commit.
nodes = Table(
    "lodger_nodes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("lease_until_us", Us, nullable=False),
    Column("started_us", Us, nullable=False),
    # Last renewal of its lease, by the lease's clock.
    Column("seen_us", Us, nullable=False, server_default="0"),
    Column("labels", Text, nullable=False, server_default=""),
    Column("slots", Integer, nullable=False, server_default="0"),
    Column("version", String(40), nullable=False, server_default=""),
    # Revision of the schema that its release was made for.
    Column("schema_revision", String(32), nullable=False, server_default=""),
    # None: it claims actions.
    Column("paused_us", Us),
    # Why it plans and starts nothing, because time is wrong.
    Column("held", Text),
    CheckConstraint("state IN ('alive', 'stopped', 'lost')", name="state"),
    info=guards(churn=Churn.HOT),
)

#: Columns that the renewal of a lease writes.
HEARTBEAT = ("lease_until_us", "seen_us")

#: Metrics of the nodes of each process as Prometheus text, shown by the API of any process.
node_figures = Table(
    "lodger_node_figures",
    metadata,
    Column("process", Id, primary_key=True),
    Column("node", Name, nullable=False),
    Column("figures", Text, nullable=False),
    Column("written_us", Us, nullable=False),
)

#: Named locks: one holder at a time until its lease ends, and the last holder.
locks = table_of_tenants(
    "lodger_locks",
    Column("name", Name, primary_key=True),
    # None: the lock is free.
    Column("holder", String(200)),
    # Incremented each time the lock is taken; a holder with an older epoch has lost it.
    Column("epoch", Integer, nullable=False),
    Column("until_us", Us, nullable=False),
    Column("slot", Us),
    Column("taken_us", Us, nullable=False),
    Column("freed_us", Us),
    Column("node", Name, nullable=False),
)

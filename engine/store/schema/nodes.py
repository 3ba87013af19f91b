"""Nodes and the named locks between them."""

from sqlalchemy import CheckConstraint, Column, Integer, String, Table, Text

from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.scheduling import Name, Us
from lodger.engine.store.stores.expressions import Id

#: One lease per node, not per action. A node whose row is gone or whose epoch moved commits nothing.
nodes = Table(
    "lodger_nodes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("lease_until_us", Us, nullable=False),
    Column("started_us", Us, nullable=False),
    # When it last renewed its lease, by the lease's clock.
    Column("seen_us", Us, nullable=False, server_default="0"),
    Column("labels", Text, nullable=False, server_default=""),
    Column("slots", Integer, nullable=False, server_default="0"),
    Column("version", String(40), nullable=False, server_default=""),
    CheckConstraint("state IN ('alive', 'stopped', 'lost')", name="state"),
)

#: What the nodes of each process have counted, as Prometheus text: the API of another process shows it.
node_figures = Table(
    "lodger_node_figures",
    metadata,
    Column("process", Id, primary_key=True),
    Column("node", Name, nullable=False),
    Column("figures", Text, nullable=False),
    Column("written_us", Us, nullable=False),
)

#: Named locks: one holder at a time, until its lease ends; and what is remembered of the last one.
locks = Table(
    "lodger_locks",
    metadata,
    Column("tenant_id", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    # Who holds it; None: nobody.
    Column("holder", String(200)),
    # Moves on each time it is taken: who holds an older one holds nothing.
    Column("epoch", Integer, nullable=False),
    Column("until_us", Us, nullable=False),
    Column("slot", Us),
    Column("taken_us", Us, nullable=False),
    Column("freed_us", Us),
    Column("node", Name, nullable=False),
)

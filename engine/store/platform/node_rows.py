"""Nodes as people see them: who is alive, what they carry, what they run, when they were heard of last."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, select

from lodger.engine.core.clock import from_us
from lodger.engine.store.context import Books
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.schema.scheduling import actions, is_running

#: How long a node that has ended is remembered, microseconds: last runs name it.
KEPT_US = 30 * 86_400_000_000


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node.

    Attributes:
        state: alive, silent (its lease has ended, and nobody has taken its actions yet), stopped or lost.
        seen_at: when it renewed its lease last, by the lease's clock.
        silent_s: how long ago that was.
        running: attempts that the ledger says run there, of ``slots`` at once.
    """

    id: str
    name: str
    state: str
    labels: tuple[str, ...]
    version: str
    started_at: datetime
    seen_at: datetime
    silent_s: float
    slots: int
    running: int
    epoch: int


def list_all(books: Books, connection: Connection, now_us: int, *, gone: bool) -> list[NodeRow]:
    """Give the nodes by name, the living first."""
    now_us = books.lease_us(connection, now_us)
    busy = (
        select(actions.c.node_id, func.count().label("number")).where(is_running).group_by(actions.c.node_id).subquery()
    )
    statement = select(nodes, func.coalesce(busy.c.number, 0).label("running")).outerjoin_from(
        nodes, busy, busy.c.node_id == nodes.c.id
    )
    if not gone:
        statement = statement.where(nodes.c.state == "alive")
    rows = connection.execute(statement.order_by(nodes.c.state, nodes.c.name, nodes.c.started_us.desc()))
    return [
        NodeRow(
            row.id, row.name, "silent" if row.state == "alive" and row.lease_until_us < now_us else row.state,
            tuple(row.labels.split()), row.version, from_us(row.started_us), from_us(row.seen_us),
            max(0.0, (now_us - row.seen_us) / 1_000_000), row.slots, row.running, row.epoch,
        )
        for row in rows
    ]  # fmt: skip


def forget(books: Books, connection: Connection, now_us: int) -> int:
    """Delete nodes that ended long ago; give their number."""
    before = books.lease_us(connection, now_us) - KEPT_US
    done = connection.execute(delete(nodes).where(nodes.c.state != "alive", nodes.c.seen_us < before))
    return done.rowcount

"""Nodes for display: state, labels, running attempts, last renewal, and the metrics that they publish."""

import re
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, select

from lodger.engine.core.access.labels import SET
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.states import NodeState
from lodger.engine.store.bulk import update_row
from lodger.engine.store.connection.database import Database
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.records import AnyRow
from lodger.engine.store.rows import record
from lodger.engine.store.schema.nodes import node_figures, nodes, sets
from lodger.engine.store.schema.scheduling import actions, is_running

#: How long a stopped node is kept, microseconds: last runs refer to it.
KEPT_US = 30 * 86_400_000_000
#: Maximum age of the published metrics of a process, microseconds.
STALE_US = 60_000_000


#: How often a process that exposes a table says so, microseconds.
SET_SEEN_US = 86_400_000_000


def note_set(database: Database, name: str, now_us: int) -> None:
    """Record that a process of this ledger has exposed a table under a name."""
    with database.read() as connection:
        seen_us = connection.scalar(select(sets.c.seen_us).where(sets.c.name == name))
    if seen_us is not None and seen_us + SET_SEEN_US > now_us:
        return
    with database.write() as connection:
        made = driver_of(connection).insert(sets).values(name=name, seen_us=now_us)
        connection.execute(made.on_conflict_do_update(index_elements=[sets.c.name], set_={"seen_us": now_us}))


def known_sets(connection: Connection, now_us: int) -> frozenset[str]:
    """Return the names under which processes of this ledger have exposed tables lately, and those that nodes carry."""
    noted = connection.scalars(select(sets.c.name).where(sets.c.seen_us > now_us - KEPT_US)).all()
    carried = connection.scalars(select(nodes.c.labels).where(nodes.c.lease_until_us > now_us - KEPT_US)).all()
    return frozenset(noted) | {
        each.removeprefix(SET) for labels in carried for each in labels.split() if each.startswith(SET)
    }


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node.

    Attributes:
        state: alive, paused (it starts no action), held (time is wrong there: see ``held``), silent (its lease has expired and
            its actions are not rescued yet), stopped or lost.
        seen_at: last renewal of its lease, by the lease's clock.
        silent_s: time since then.
        running: attempts that run there according to the ledger, of ``slots`` at once.
        saturation: part of the last minute, 0 to 1, in which it had no free slot or too little CPU time; None if not
            known yet.
        walls: whether each wall of its workers is active; None if not known, or if it runs no scripts.
        held: why the node plans and starts nothing, because time is wrong; None if it is right.
    """

    id: str
    name: str
    state: NodeState
    labels: tuple[str, ...]
    version: str
    started_at: datetime
    seen_at: datetime
    silent_s: float
    slots: int
    running: int
    epoch: int
    saturation: float | None = None
    walls: dict[str, bool] | None = None
    held: str | None = None


_saturation = re.compile(r"^lodger_node_saturation (\S+)$", re.MULTILINE)
_wall = re.compile(r'^lodger_wall_active\{wall="(\w+)"\} (\S+)$', re.MULTILINE)


def list_all(context: StoreContext, connection: Connection, now_us: int, *, gone: bool) -> list[NodeRow]:
    """Return the nodes by name, living ones first."""
    now_us = context.lease_us(connection, now_us)
    busy = (
        select(actions.c.node_id, func.count().label("number")).where(is_running).group_by(actions.c.node_id).subquery()
    )
    statement = select(nodes, func.coalesce(busy.c.number, 0).label("running")).outerjoin_from(
        nodes, busy, busy.c.node_id == nodes.c.id
    )
    if not gone:
        statement = statement.where(nodes.c.state == "alive")
    rows = connection.execute(statement.order_by(nodes.c.state, nodes.c.name, nodes.c.started_us.desc()))
    fresh = select(node_figures.c.node, node_figures.c.figures).where(node_figures.c.written_us >= now_us - STALE_US)
    figures = {row.node: row.figures for row in connection.execute(fresh)}
    saturation = {node: float(found[1]) for node, text in figures.items() if (found := _saturation.search(text))}
    walls = {node: {wall: float(value) > 0 for wall, value in _wall.findall(text)} for node, text in figures.items()}
    return [
        record(
            NodeRow, row, state=_state(row, now_us), labels=tuple(row.labels.split()),
            silent_s=max(0.0, (now_us - row.seen_us) / 1_000_000),
            saturation=saturation.get(row.name) if row.state == "alive" else None,
            walls=(walls.get(row.name) or None) if row.state == "alive" else None,
        )
        for row in rows
    ]  # fmt: skip


def _state(row: AnyRow, now_us: int) -> NodeState:
    """Return the state of a node from its row."""
    if row.state != "alive":
        return "stopped" if row.state == "stopped" else "lost"
    if row.lease_until_us < now_us:
        return "silent"
    if row.held is not None:
        return "held"
    return "alive" if row.paused_us is None else "paused"


def get(context: StoreContext, connection: Connection, node: str, now_us: int) -> NodeRow:
    """Return a living node by name or id.

    Raises:
        NotFound: node_unknown.
        InputError: node_ambiguous.
    """
    found = [each for each in list_all(context, connection, now_us, gone=False) if node in {each.id, each.name}]
    if not found:
        raise NotFound("node_unknown", node=node)
    if len(found) > 1:
        ids = ", ".join(f"{each.id} ({each.state})" for each in found)
        raise InputError("node_ambiguous", name=node, count=len(found), ids=ids)
    return found[0]


def namesakes(context: StoreContext, connection: Connection, name: str, node_id: str, now_us: int) -> list[str]:
    """Return the ids of other nodes of a name that hold a lease."""
    alive = (nodes.c.state == "alive") & (nodes.c.lease_until_us > context.lease_us(connection, now_us))
    return list(connection.scalars(select(nodes.c.id).where(nodes.c.name == name, nodes.c.id != node_id, alive)))


def set_paused(connection: Connection, node_id: str, paused_us: int | None) -> None:
    """Pause a node from an instant on, or let it claim again (None)."""
    update_row(connection, nodes, node_id, paused_us=paused_us)


def set_held(connection: Connection, node_id: str, held: str | None) -> None:
    """Note why a node plans and starts nothing; None: it works."""
    update_row(connection, nodes, node_id, held=held)


def delete_stopped(context: StoreContext, connection: Connection, now_us: int) -> int:
    """Delete nodes that stopped long ago; return their number."""
    before = context.lease_us(connection, now_us) - KEPT_US
    done = connection.execute(delete(nodes).where(nodes.c.state != "alive", nodes.c.seen_us < before))
    return done.rowcount


def publish_metrics(
    context: StoreContext, connection: Connection, process: str, node: str, figures: str, now_us: int
) -> None:
    """Store the metrics of a process's nodes as Prometheus text, and delete outdated ones of other processes."""
    now_us = context.lease_us(connection, now_us)
    written = {"node": node, "figures": figures, "written_us": now_us}
    statement = driver_of(connection).insert(node_figures).values(process=process, **written)
    connection.execute(statement.on_conflict_do_update(index_elements=["process"], set_=written))
    connection.execute(delete(node_figures).where(node_figures.c.written_us < now_us - STALE_US))


def probe(connection: Connection) -> None:
    """Write a row and delete it again, which fails on a full disk."""
    connection.execute(insert(node_figures).values(process="probe", node="", figures="", written_us=0))
    connection.execute(delete(node_figures).where(node_figures.c.process == "probe"))


def metrics_of_others(
    context: StoreContext, connection: Connection, process: str, now_us: int
) -> list[tuple[str, str]]:
    """Return names and current metrics of the nodes of all other processes, by name."""
    after = context.lease_us(connection, now_us) - STALE_US
    wanted = select(node_figures.c.node, node_figures.c.figures).where(
        node_figures.c.process != process, node_figures.c.written_us >= after
    )
    return [(row.node, row.figures) for row in connection.execute(wanted.order_by(node_figures.c.node))]

"""Placements: the nodes that run a schedule placed on every node, and the actions of nodes that are gone."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, select, update

from lodger.engine.core.access.labels import NODE, carries
from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import PLATFORM
from lodger.engine.policy.conduct import Conduct, Placement
from lodger.engine.store.context import StoreContext
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.queue.stops import go_on_after
from lodger.engine.store.records import AnyRow
from lodger.engine.store.revision_cache import Revision
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.schema.scheduling import actions, is_startable
from lodger.engine.store.schema.scheduling import turns as turn_rows

#: How long a node may be away, as in a restart, before the actions placed on it are skipped, microseconds.
PATIENCE_US = 60_000_000
#: Reason of an action that was skipped because its node is gone.
GONE = "node_gone"


def require_placement(conduct: Conduct, tenant_id: str) -> None:
    """Refuse placement on every node for schedules of tenants: only the platform's may use it.

    Raises:
        InputError: placement_refused.
    """
    if conduct.placement is Placement.EVERY_NODE and tenant_id != PLATFORM:
        raise InputError("placement_refused", platform=PLATFORM)


_living = select(nodes.c.name, nodes.c.labels, nodes.c.paused_us, nodes.c.held).where(
    nodes.c.state == "alive", nodes.c.lease_until_us >= bindparam("now")
)


def living_nodes(context: StoreContext, connection: Connection, now_us: int) -> list[AnyRow]:
    """Return the rows (name, labels, paused_us, held) of the nodes with a valid lease, by name, each name once."""
    found = {row.name: row for row in connection.execute(_living, {"now": context.lease_us(connection, now_us)})}
    return [found[name] for name in sorted(found)]


def node_keys(revision: Revision, nodes: Sequence[AnyRow]) -> list[str | None]:
    """Return the node keys of a schedule's next actions: '' for any node, or the name of each matching node, or None without one."""
    if not revision.everywhere:
        return [""]
    return [node.name for node in nodes if carries(node.labels.split(), revision.requires)] or [None]


_required = select(turn_rows.c.tenant_id, turn_rows.c.requires).where(
    turn_rows.c.requires > "", turn_rows.c.startable_at.is_not(None)
)
_seen = select(nodes.c.name, func.max(nodes.c.lease_until_us).label("until_us")).group_by(nodes.c.name)
_skip = (
    update(actions)
    .where(
        actions.c.tenant_id == bindparam("tenant"),
        actions.c.requires == bindparam("labels"),
        actions.c.node_key == bindparam("key"),
        is_startable,
    )
    .values(state="skipped", reason=GONE, held=0, finished_us=bindparam("now"))
    .returning(actions.c.tenant_id, actions.c.schedule_id, actions.c.node_key, actions.c.id)
)


def abandoned_queues(context: StoreContext, connection: Connection, now_us: int) -> list[tuple[str, str, str]]:
    """Return (tenant, labels, node name) of queues that wait for a node that is gone; reads only."""
    waiting = [
        (tenant, requires, label.removeprefix(NODE))
        for tenant, requires in connection.execute(_required)
        for label in requires.split()
        if label.startswith(NODE)
    ]
    if not waiting:
        return []
    seen = {row.name: row.until_us for row in connection.execute(_seen)}
    before = context.lease_us(connection, now_us) - PATIENCE_US
    return [each for each in waiting if seen.get(each[2], 0) < before]


def skip_abandoned(connection: Connection, gone: Sequence[tuple[str, str, str]], now_us: int) -> list[AnyRow]:
    """Skip waiting actions that were placed on these nodes; return (tenant_id, schedule_id, node_key, id) of each.

    Actions of tenants or schedules that are bound to a node by label continue to wait.
    """
    ready_queue.lock(connection, (tenant for tenant, _labels, _key in gone))
    ended: list[AnyRow] = []
    for tenant, requires, key in gone:
        ended += connection.execute(_skip, {"tenant": tenant, "labels": requires, "key": key, "now": now_us}).all()
    go_on_after(connection, ended)
    return ended

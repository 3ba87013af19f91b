"""Takes back actions of lost nodes and silent attempts, which run again; ends actions that wait too long, or for a node that is gone."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.events import ActionsReady, ChangeReported
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import leases
from lodger.engine.store.queue import placements, stops
from lodger.engine.store.records import AnyRow


class Recovery(Service):
    """Looks four times a lease; writes only when there is something to take."""

    name: ClassVar[str] = "recovery"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.wake_on(ChangeReported)

    async def round(self) -> float:
        """Take back actions of lost nodes, and end those that wait too long."""
        context, clock = self.context, self.clock
        store, db, bus = context.store, context.db, context.bus
        if clock.hold:
            return context.settings.lease_s / 4
        now = clock.now_us()
        overdue, gone = await db.read(self._find)
        if overdue.in_future and not clock.skewed:
            await db.write(partial(leases.reset_future, store, now_us=clock.now_us))
        if overdue.lost:
            rescued = await db.write(partial(leases.rescue, store, now_us=now))
            bus.publish(ActionsReady())
            for name in rescued.nodes:
                bus.publish(context.event("node_lost", node=name))
            for each in rescued.actions:
                action = each.tenant_id, each.schedule_id, each.action_id
                bus.publish(context.event("rescued", action, state=each.state))
        for row in await db.write(partial(stops.expire, now_us=now)) if overdue.expiring else ():
            bus.publish(context.event("expired", (row.tenant_id, row.schedule_id, row.id)))
        for row in await db.write(partial(placements.skip_abandoned, gone=gone, now_us=now)) if gone else ():
            action = row.tenant_id, row.schedule_id, row.id
            bus.publish(context.event("skipped", action, reason=placements.GONE, node=row.node_key))
        return context.settings.lease_s / 4

    def _find(self, connection: Connection) -> tuple[leases.Overdue, Sequence[AnyRow]]:
        """Find overdue attempts and actions, and queues of nodes that are gone, in one transaction; mostly there are none."""
        store, now = self.context.store, self.clock.now_us()
        overdue = leases.find_overdue(store, connection, now_us=now)
        return overdue, placements.abandoned_queues(store, connection, now_us=now) if overdue.labelled else ()

"""Takes back what lost nodes and silent attempts hold, which runs again; ends what waits too long, or for a node that is gone."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.events import ActionsReady, ChangeReported
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import ActionsExpired, AttemptsRescued, PlacementsGone
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import leases
from lodger.engine.store.queue import expiry, placements
from lodger.engine.store.records import AnyRow


class Recovery(Service):
    """Looks four times a lease; writes only when there is something to take."""

    name: ClassVar[str] = "recovery"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.wake_on(ChangeReported)

    async def round(self) -> float:
        """Look once."""
        context, clock = self.context, self.clock.now_us
        store, db, bus = context.store, context.db, context.bus
        now = clock()
        back, overdue, expired, gone = await db.read(self._find)
        if back:
            await db.write(partial(leases.reset_future, store, now_us=clock))
        if overdue:
            rescued = await db.write(partial(leases.rescue, store, now_us=now))
            bus.publish(ActionsReady())
            bus.publish(AttemptsRescued(rescued))
        if expired:
            bus.publish(ActionsExpired(tuple(await db.write(partial(expiry.expire, now_us=now)))))
        if gone:
            bus.publish(
                PlacementsGone(tuple(await db.write(partial(placements.skip_abandoned, gone=gone, now_us=now))))
            )
        return context.settings.lease_s / 4

    def _find(self, connection: Connection) -> tuple[bool, bool, bool, Sequence[AnyRow]]:
        """Ask all of it in one transaction: mostly there is nothing."""
        store, now = self.context.store, self.clock.now_us()
        back = not self.clock.skewed and leases.any_in_future(store, connection, self.clock.now_us)
        overdue = leases.any_expired(store, connection, now_us=now)
        return (
            back,
            overdue,
            expiry.any_expired(connection, now_us=now),
            placements.abandoned_queues(store, connection, now_us=now),
        )

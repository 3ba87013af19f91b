"""Takes and renews the lease of this node."""

import logging
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.access.labels import parse_labels
from lodger.engine.core.events import ChangeReported, LeaseRenewed
from lodger.engine.core.handlers import Handlers
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.context import database_us
from lodger.engine.store.lifecycle import leases
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.platform import node_rows

_log = logging.getLogger("lodger.node")


class LeaseKeeper(Service):
    """Takes and renews the lease, and compares this machine's clock with the server's on the way.

    A node that cannot renew kills its workers before the lease ends, and begins anew under a new epoch.

    Args:
        handlers, datasets: functions and exposed tables of this process, each of which is a label of the node.
    """

    name: ClassVar[str] = "lease-keeper"

    def __init__(self, context: NodeContext, handlers: Handlers, datasets: Datasets) -> None:
        super().__init__(context)
        self._handlers, self._datasets = handlers, datasets
        #: The server's time, and this machine's before and after it was asked.
        self._compared: tuple[int, int, int] | None = None
        self.wake_on(ChangeReported)  # a handler may have been registered

    async def register(self) -> None:
        """Take a lease under a new epoch; claims of an earlier epoch are no longer this node's."""
        context, identity = self.context, self.context.identity
        begun = self.clock.elapsed_s()
        take = partial(
            leases.register, context.store, node_id=identity.id, name=identity.name, now_us=self.clock.now_us(),
            labels=self._labels(), slots=context.settings.slots, after=identity.epoch,
        )  # fmt: skip
        identity.lease = await context.db.write(take)
        identity.epoch, identity.renewed_s = identity.lease.epoch, begun
        if context.store.database_time:
            asked = self.clock.own_us()
            self.clock.set_offset(await context.db.read(database_us), asked, self.clock.own_us())

    async def warn_of_namesakes(self) -> None:
        """Log that other living nodes have this node's name; when it starts, not each time that it registers anew."""
        context, identity = self.context, self.context.identity
        ask = partial(
            node_rows.namesakes, context.store, name=identity.name, node_id=identity.id, now_us=self.clock.now_us()
        )
        if others := await context.db.read(ask):
            _log.warning(
                "another node is called %s, too, and holds a lease (%s): if it was not this node before a restart, give each node a name "
                "of its own (lodger up --name); placement, pausing and metrics go by the name", identity.name, ", ".join(others),
            )  # fmt: skip

    async def round(self) -> float:
        """Renew the lease of this node, or take a new one if it was lost."""
        context, identity = self.context, self.context.identity
        lease, begun = identity.lease, self.clock.elapsed_s()
        if lease is None:
            await self.register()
        # Nothing that may start or is due depends on it: no other service need look because of it.
        elif await context.db.write(partial(self._renew, lease=lease), quiet=True):
            context.bus.publish(LeaseRenewed(begun - identity.renewed_s))
            identity.renewed_s = begun
            labels = self._labels()
            if not labels <= lease.labels or len(labels) + 1 != len(lease.labels):
                identity.lease = await context.db.write(partial(leases.relabel, lease=lease, labels=labels))
            if self._compared is not None:
                self.clock.set_offset(*self._compared)
        else:
            context.surrender("another node has taken over")
            return 0.0
        return context.settings.renewal_s

    def _labels(self) -> frozenset[str]:
        """Return the labels of this node: those of the settings, and of handlers and exposed tables of this process."""
        return frozenset(parse_labels(self.context.settings.labels)) | self._handlers.labels | self._datasets.labels

    def _renew(self, connection: Connection, lease: Lease) -> bool:
        """Renew by the clock that leases are kept by; a server's clock is compared with this machine's."""
        store, clock = self.context.store, self.clock
        asked = clock.own_us()
        now = leases.renew(store, connection, lease, clock.now_us())
        self._compared = (now, asked, clock.own_us()) if store.database_time and now is not None else None
        return now is not None

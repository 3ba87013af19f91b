"""Leases: renews this node's, takes the actions of nodes that lost theirs, kills what is this node's no more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from sqlalchemy import Connection

from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import clock_rollback, leases
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.queue import expiry, placements
from lodger.engine.store.records import AnyRow

if TYPE_CHECKING:
    from lodger.engine.node.node import Node


class Heartbeat(Service):
    """Renews the lease. A node that cannot kills its workers before the lease ends, and begins anew under a new epoch."""

    name: ClassVar[str] = "heartbeat"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        #: The server's time, and this machine's before and after it was asked.
        self._compared: tuple[int, int, int] | None = None

    async def round(self) -> float:
        """Renew once."""
        node, lease = self._node, self._node.lease
        begun = self.clock.elapsed_s()
        if lease is None:
            await node.register()
        # Nothing that may start or is due depends on it: no other service need look because of it.
        elif await node.pen.write(partial(self._renewed, lease=lease), quiet=True):
            node.dispatcher.renewed(begun - node.renewed_s)
            node.renewed_s = begun
            labels = node.labels()
            if not labels <= lease.labels or len(labels) + 1 != len(lease.labels):
                node.lease = await node.pen.write(partial(leases.relabel, lease=lease, labels=labels))
            if self._compared is not None:
                node.compared(*self._compared)
        else:
            node.lose_lease("another node has taken it")
            return 0.0
        return node.settings.renewal_s

    def _renewed(self, connection: Connection, lease: Lease) -> bool:
        """Renew by the time that leases are kept by; a server's is compared with this machine's on the way."""
        books, clock = self._node.books, self._node.clock
        asked = clock.own_us()
        now = books.lease_us(connection, clock.now_us())
        self._compared = (now, asked, clock.own_us()) if books.database_time else None
        return leases.renew(books, connection, lease, now)


class Warden(Service):
    """Gives the lease up by this node's own elapsed time, whatever the database says or does not say."""

    name: ClassVar[str] = "warden"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node

    async def round(self) -> float:
        """Check once."""
        node = self._node
        left = node.renewed_s + node.settings.lease_s - node.settings.surrendering_s - self.clock.elapsed_s()
        if node.lease is not None and left <= 0:
            node.lose_lease("it could not be renewed in time")
        return min(max(left, 0.05), node.settings.renewal_s)


class Rescuer(Service):
    """Takes back what lost nodes and silent attempts hold, which runs again; ends what waits too long, or for nobody."""

    name: ClassVar[str] = "rescuer"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node

    async def round(self) -> float:
        """Look once; write only when there is something to take."""
        node, clock = self._node, self.clock.now_us
        now = clock()
        back, overdue, expired, gone = await node.pen.read(self._found)
        if back:
            await node.pen.write(partial(clock_rollback.mend, node.books, now_us=clock))
        if overdue:
            node.told_rescue(await node.pen.write(partial(leases.rescue, node.books, now_us=now)))
        if expired:
            node.told_expiry(await node.pen.write(partial(expiry.expire, now_us=now)))
        if gone:
            node.told_gone(await node.pen.write(partial(placements.give_up, gone=gone, now_us=now)))
        return node.settings.lease_s / 4

    def _found(self, connection: Connection) -> tuple[bool, bool, bool, Sequence[AnyRow]]:
        """Ask all of it in one transaction: mostly there is nothing."""
        node, now = self._node, self.clock.now_us()
        back = not node.clock.skewed and clock_rollback.back(node.books, connection, self.clock.now_us)
        overdue = leases.overdue(node.books, connection, now_us=now)
        return (
            back,
            overdue,
            expiry.due(connection, now_us=now),
            placements.deserted(node.books, connection, now_us=now),
        )


class Watch(Service):
    """Sees within ``poll_s`` that an attempt was cancelled, suspended or rescued away, and kills its worker.

    And the other way round: what the ledger says runs here and does not, because the answer to its claim was lost on the way,
    is handed back.
    """

    name: ClassVar[str] = "watch"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node

    async def round(self) -> float:
        """Compare what runs here with what the ledger says runs here."""
        node, dispatcher = self._node, self._node.dispatcher
        # Taken before the snapshot: an attempt claimed meanwhile is in neither.
        here, claiming = set(dispatcher.running), dispatcher.claiming
        lease = node.lease
        if lease is not None and (here or dispatcher.in_doubt):
            mine = await node.pen.read(partial(leases.running, lease=lease))
            dispatcher.kill(here - mine - node.committer.waiting())
            absent = mine - set(dispatcher.running) - node.committer.waiting()
            # What a claim has just written is absent until it is answered: then it is looked at again.
            dispatcher.in_doubt = bool(absent) and (claiming or dispatcher.claiming)
            if absent and not dispatcher.in_doubt:
                await node.pen.write(partial(leases.hand_back, lease=lease, attempts=absent))
                dispatcher.nudge()
        # The lookout wakes it as long as anything runs here.
        return node.patience_s

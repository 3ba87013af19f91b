"""Forgets history: goes round the tenants, one small transaction after the other, and rests in between."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from lodger.engine.ledger import node_rows, retention
from lodger.engine.ledger.records import AnyRow
from lodger.engine.node.service import Service

if TYPE_CHECKING:
    from lodger.engine.node.node import Node

#: Rest between two tenants, and after a whole round, seconds.
STEP_S = 0.05
ROUND_S = 600.0
#: After a look that found nothing it rests so many times as long as that took, so that looking never costs more than half
#: a hundredth of a core, however many tenants and schedules there are.
REST = 200.0


class Archivist(Service):
    """Keeps each tenant's history as long as its retention says, keyed values as long as they live, and no longer."""

    name: ClassVar[str] = "archivist"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._waiting: list[str] = []
        self._last = ""

    async def round(self) -> float:
        """Forget a little of one tenant."""
        node = self._node
        if not self._waiting:
            self._waiting = await node.pen.read(partial(retention.tenants_after, tenant_id=self._last))
            if not self._waiting:
                self._last = ""
                await node.pen.write(partial(node_rows.forget, node.books, now_us=self.clock.now_us()))
                return ROUND_S
        tenant, now = self._waiting[0], self.clock.now_us()
        # A thread of its own: the node's reader may not wait for a look at history.
        rows, keys, took_s = await asyncio.to_thread(self._look, tenant, now)
        if keys:
            await node.pen.write(partial(retention.drop_expired, tenant_id=tenant, keys=keys, now_us=now))
        if rows:
            await node.pen.write(partial(retention.drop, rows=rows, now_us=now))
            node.tell("forgotten", tenant=tenant, actions=len(rows))
        if len(rows) < retention.MOST and len(keys) < retention.MOST:
            self._last = self._waiting.pop(0)
        return STEP_S if rows or keys else max(STEP_S, REST * took_s)

    def _look(self, tenant: str, now_us: int) -> tuple[list[AnyRow], list[AnyRow], float]:
        begun_s = self.clock.elapsed_s()
        with self._node.books.database.read() as connection:
            rows = retention.old(self._node.books, connection, tenant, now_us)
            keys = retention.expired(connection, tenant, now_us)
        return rows, keys, self.clock.elapsed_s() - begun_s

"""Forgets history: goes round the tenants, one small transaction after the other, and rests in between."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import retention, running_lines
from lodger.engine.store.platform import node_rows
from lodger.engine.store.records import AnyRow
from lodger.engine.store.usage import storage_usage

if TYPE_CHECKING:
    from lodger.engine.node.node import Node

#: Rest between two tenants, and after a whole round, seconds.
STEP_S = 0.05
ROUND_S = 600.0
#: After a look that found nothing it rests so many times as long as that took, so that looking never costs more than half
#: a hundredth of a core, however many tenants and schedules there are.
REST = 200.0
#: How often those are looked for that store more than the operator lets a tenant: a round may take longer than their disk lasts.
LOOK_S = 10.0


class Archivist(Service):
    """Keeps each tenant's history as long as its retention says, keyed values as long as they live, and no longer."""

    name: ClassVar[str] = "archivist"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._waiting: list[str] = []
        self._last = ""
        self._heavy: list[str] = []
        self._look_at = self._round_at = 0.0

    async def round(self) -> float:
        """Forget a little of one tenant: of one that stores too much before all others."""
        node, elapsed_s = self._node, self.clock.elapsed_s()
        if elapsed_s >= self._look_at:
            self._look_at = elapsed_s + LOOK_S
            self._heavy = await node.pen.read(partial(storage_usage.too_heavy, node.books))
        if self._heavy:
            done, rest_s = await self._forget(self._heavy[0])
            if done:
                self._heavy.pop(0)
            return rest_s
        if not self._waiting:
            if elapsed_s < self._round_at:
                return min(LOOK_S, self._round_at - elapsed_s)
            self._waiting = await node.pen.read(partial(retention.tenants_after, tenant_id=self._last))
            if not self._waiting:
                self._last = ""
                await node.pen.write(partial(node_rows.forget, node.books, now_us=self.clock.now_us()))
                await node.pen.write(partial(running_lines.sweep, now_us=self.clock.now_us()))
                self._round_at = elapsed_s + ROUND_S
                return min(LOOK_S, ROUND_S)
        done, rest_s = await self._forget(self._waiting[0])
        if done:
            self._last = self._waiting.pop(0)
        return rest_s

    async def _forget(self, tenant: str) -> tuple[bool, float]:
        """Forget a little; give whether it was all that is to be forgotten now, and how long to rest."""
        node, now = self._node, self.clock.now_us()
        # A thread of its own: the node's reader may not wait for a look at history.
        rows, keys, took_s = await asyncio.to_thread(self._look, tenant, now)
        if keys:
            await node.pen.write(partial(retention.drop_expired, tenant_id=tenant, keys=keys, now_us=now))
        if rows:
            await node.pen.write(partial(retention.drop, rows=rows, now_us=now))
            node.tell("forgotten", tenant=tenant, actions=len(rows))
        done = len(rows) < retention.MOST and len(keys) < retention.MOST
        return done, STEP_S if rows or keys else max(STEP_S, REST * took_s)

    def _look(self, tenant: str, now_us: int) -> tuple[list[AnyRow], list[AnyRow], float]:
        begun_s = self.clock.elapsed_s()
        with self._node.books.database.read() as connection:
            rows = retention.old(self._node.books, connection, tenant, now_us)
            keys = retention.expired(connection, tenant, now_us)
        return rows, keys, self.clock.elapsed_s() - begun_s

"""Deletes history that is older than its retention: goes round the tenants, one small transaction after the other, and rests in between."""

import asyncio
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import retention, running_lines
from lodger.engine.store.platform import node_rows
from lodger.engine.store.records import AnyRow
from lodger.engine.store.usage import storage_usage

#: Rest between two tenants, and after a whole round, seconds.
STEP_S = 0.05
ROUND_S = 600.0
#: After a look that found nothing it rests so many times as long as that took, so that looking never costs more than half
#: a hundredth of a core, however many tenants and schedules there are.
REST = 200.0
#: How often those are looked for that store more than the operator lets a tenant: a round may take longer than their disk lasts.
LOOK_S = 10.0
#: Target for a transaction that deletes: others wait for its locks.
HELD_S = 0.05


class Retention(Service):
    """Keeps each tenant's history as long as its retention says, keyed values as long as they live, and no longer."""

    name: ClassVar[str] = "retention"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._waiting: list[str] = []
        self._last = ""
        self._heavy: list[str] = []
        self._look_at = self._round_at = 0.0
        self._at_once = retention.MAX_ROWS

    async def round(self) -> float:
        """Forget a little of one tenant: of one that stores too much before all others."""
        context, elapsed_s = self.context, self.clock.elapsed_s()
        if elapsed_s >= self._look_at:
            self._look_at = elapsed_s + LOOK_S
            self._heavy = await context.db.read(partial(storage_usage.over_limit, context.store))
        if self._heavy:
            done, rest_s = await self._forget(self._heavy[0])
            if done:
                self._heavy.pop(0)
            return rest_s
        if not self._waiting:
            if elapsed_s < self._round_at:
                return min(LOOK_S, self._round_at - elapsed_s)
            self._waiting = await context.db.read(partial(retention.tenants_after, tenant_id=self._last))
            if not self._waiting:
                self._last = ""
                await context.db.write(partial(node_rows.delete_stopped, context.store, now_us=self.clock.now_us()))
                await context.db.write(partial(running_lines.sweep, now_us=self.clock.now_us()))
                self._round_at = elapsed_s + ROUND_S
                return min(LOOK_S, ROUND_S)
        done, rest_s = await self._forget(self._waiting[0])
        if done:
            self._last = self._waiting.pop(0)
        return rest_s

    async def _forget(self, tenant: str) -> tuple[bool, float]:
        """Forget a little; give whether it was all that is to be forgotten now, and how long to rest."""
        context, now = self.context, self.clock.now_us()
        # A thread of its own: the node's reader must not wait for a look at history.
        rows, keys, took_s = await asyncio.to_thread(self._look, tenant, now)
        if keys:
            await context.db.write(partial(retention.delete_expired, tenant_id=tenant, keys=keys, now_us=now))
        portion = rows[: self._at_once]
        if portion:
            held_s = await context.db.write(partial(self._delete, portion, now))
            self._at_once = next_portion(len(portion), held_s)
            context.bus.publish(context.event("forgotten", tenant=tenant, actions=len(portion)))
        done = len(portion) == len(rows) < retention.MAX_ROWS and len(keys) < retention.MAX_ROWS
        return done, STEP_S if rows or keys else max(STEP_S, REST * took_s)

    def _delete(self, rows: list[AnyRow], now_us: int, connection: Connection) -> float:
        begun_s = self.clock.elapsed_s()
        retention.delete_actions(connection, rows, now_us)
        return self.clock.elapsed_s() - begun_s

    def _look(self, tenant: str, now_us: int) -> tuple[list[AnyRow], list[AnyRow], float]:
        begun_s = self.clock.elapsed_s()
        with self.context.store.database.read() as connection:
            rows = retention.find_old(self.context.store, connection, tenant, now_us)
            keys = retention.find_expired(connection, tenant, now_us)
        return rows, keys, self.clock.elapsed_s() - begun_s


def next_portion(rows: int, held_s: float) -> int:
    """Return how many actions the next transaction may delete, after one that held its locks so long for ``rows`` actions."""
    if held_s <= HELD_S:
        return min(2 * rows, retention.MAX_ROWS)
    return max(1, int(rows * HELD_S / held_s))

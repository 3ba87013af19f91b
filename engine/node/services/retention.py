"""Deletes history that is older than its retention: goes round the tenants, one small transaction after the other, and rests in between."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.drivers.features import StatementTimeout
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
#: Target for a transaction that deletes: others wait for its locks. The limit is :data:`.retention.MAX_HELD_S`.
HELD_S = 0.05
#: Rest after a transaction that reached the limit: others shall not wait more than a tenth of the time.
CANCELLED_REST_S = 1.0
_log = logging.getLogger("lodger.node")


class Retention(Service):
    """Keeps each tenant's history as long as its retention says, keyed values as long as they live, and no longer.

    A transaction that would hold its locks for too long is cancelled and tried again with half of its rows. One row that does not
    fit alone is left until the next round, and reported.
    """

    name: ClassVar[str] = "retention"

    def __init__(self, context: NodeContext, process_metrics: ProcessMetrics) -> None:
        super().__init__(context)
        self._meters = process_metrics
        self._too_slow: set[AnyRow] = set()
        self._too_slow_before = 0
        self._waiting: list[str] = []
        self._last = ""
        self._heavy: list[str] = []
        self._look_at = self._round_at = 0.0
        self._at_once = retention.MAX_ROWS

    async def round(self) -> float:
        """Delete a little old data of one tenant; tenants that store too much come first."""
        context, elapsed_s = self.context, self.clock.elapsed_s()
        if self.clock.hold:
            return LOOK_S
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
                self._too_slow_before = len(self._too_slow)
                self._meters.put("lodger_retention_too_slow", self._too_slow_before)
                self._too_slow.clear()
                await context.db.write(partial(node_rows.delete_stopped, context.store, now_us=self.clock.now_us()))
                await context.db.write(partial(running_lines.sweep, now_us=self.clock.now_us()))
                self._round_at = elapsed_s + ROUND_S
                return min(LOOK_S, ROUND_S)
        done, rest_s = await self._forget(self._waiting[0])
        if done:
            self._last = self._waiting.pop(0)
        return rest_s

    async def _forget(self, tenant: str) -> tuple[bool, float]:
        """Delete a little of a tenant's history; return whether nothing is left to delete now, and for how many seconds to rest."""
        now = self.clock.now_us()
        # A thread of its own: the node's reader must not wait for a look at history.
        rows, keys, took_s = await asyncio.to_thread(self._look, tenant, now)
        done = True
        for found, work in ((keys, retention.delete_expired), (rows, retention.delete_actions)):
            portion = found[: self._at_once]
            if not portion:
                continue
            if not await self._delete(portion, partial(work, now_us=now, elapsed_s=self.clock.elapsed_s)):
                return False, CANCELLED_REST_S
            done = done and len(portion) == len(found) < retention.MAX_ROWS
        return done, STEP_S if rows or keys else max(STEP_S, REST * took_s)

    async def _delete(self, rows: list[AnyRow], work: Callable[..., float]) -> bool:
        """Delete these rows in one transaction; return False, and allow fewer from now on, if that was cancelled."""
        try:
            held_s = await self.context.db.write(lambda connection: work(connection, rows))
        except StatementTimeout:
            self._meters.count("lodger_retention_overruns_total", "cancelled")
            self._at_once = max(1, len(rows) // 2)
            if len(rows) == 1:
                self._leave(rows[0])
            return False
        if held_s > retention.MAX_HELD_S:
            self._meters.count("lodger_retention_overruns_total", "late")
        self._at_once = next_portion(len(rows), held_s)
        return True

    def _leave(self, row: AnyRow) -> None:
        """Leave a row that does not fit into one transaction alone until the next round, and report it."""
        self._too_slow.add(row)
        self._meters.put("lodger_retention_too_slow", max(len(self._too_slow), self._too_slow_before))
        _log.warning(
            "retention cannot delete %s within %.0f ms, and tries again in the next round",
            " ".join(str(cell) for cell in row[:3] if cell),
            retention.MAX_HELD_S * 1000,
            extra={"tenant_id": row.tenant_id},
        )

    def _look(self, tenant: str, now_us: int) -> tuple[list[AnyRow], list[AnyRow], float]:
        """Return old actions and expired keys of a tenant, and the seconds that the look took."""
        begun_s = self.clock.elapsed_s()
        with self.context.store.database.read() as connection:
            rows = retention.find_old(self.context.store, connection, tenant, now_us, self._too_slow)
            keys = retention.find_expired(connection, tenant, now_us, self._too_slow)
        return rows, keys, self.clock.elapsed_s() - begun_s


def next_portion(rows: int, held_s: float) -> int:
    """Return how many actions the next transaction may delete, after one that held its locks so long for ``rows`` actions."""
    if held_s <= HELD_S:
        return min(2 * rows, retention.MAX_ROWS)
    return max(1, int(rows * HELD_S / held_s))

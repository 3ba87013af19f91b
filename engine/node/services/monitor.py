"""Watches how the node does: overdue actions, lag of the loop."""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar

from lodger.engine.core.metrics import ProcessMetrics, prometheus_text
from lodger.engine.node.context import NodeContext
from lodger.engine.node.running_attempts import RunningAttempts
from lodger.engine.node.service import Service
from lodger.engine.policy.placement import is_overloaded
from lodger.engine.store.platform import gauges, node_rows

ROUND_S = 1.0
#: Rounds between two questions for overdue actions.
LEDGER_ROUNDS = 10
#: How many rounds the saturation is averaged over.
SATURATION_ROUNDS = 60


class Monitor(Service):
    """Reports ``overdue``; sets the process's gauges.

    Args:
        walls: returns the report of the workers' zygote: maps each wall to "", or to the reason why it is not active.
    """

    name: ClassVar[str] = "monitor"

    def __init__(
        self,
        context: NodeContext,
        attempts: RunningAttempts,
        process_metrics: ProcessMetrics,
        walls: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        super().__init__(context)
        self._walls = walls
        self._attempts = attempts
        self._meters = process_metrics
        self._overloaded: deque[bool] = deque(maxlen=SATURATION_ROUNDS)
        self._rounds = 0
        self._expected_s: float | None = None

    async def round(self) -> float:
        """Measure this node, and in some rounds look for overdue actions in the ledger."""
        now_s, meters = self.clock.elapsed_s(), self._meters
        lag_s = 0.0 if self._expected_s is None else max(0.0, now_s - self._expected_s)
        meters.put("lodger_loop_lag_seconds", lag_s)
        self._overloaded.append(is_overloaded(full=self._attempts.free <= 0, lag_s=lag_s))
        meters.put("lodger_node_saturation", sum(self._overloaded) / len(self._overloaded))
        meters.put("lodger_running", len(self._attempts.running))
        meters.put("lodger_waiting", self._attempts.waiting)
        if self._rounds % LEDGER_ROUNDS == 0:
            await self._publish_figures(self.clock.now_us())
            await self._look_at_ledger(self.clock.now_us())
        self._rounds += 1
        self._expected_s = self.clock.elapsed_s() + ROUND_S
        return ROUND_S

    async def _publish_figures(self, now_us: int) -> None:
        """Write the counters of this process for the API of another process."""
        for wall, missing in self._walls().items():
            self._meters.put("lodger_wall_active", 0.0 if missing else 1.0, wall)
        publish = partial(
            node_rows.publish_metrics, self.context.store, process=self._meters.process, node=self.context.identity.name,
            figures=prometheus_text(self._meters.read()), now_us=now_us,
        )  # fmt: skip
        await self.context.db.write(publish, quiet=True)

    async def _look_at_ledger(self, now_us: int) -> None:
        """Publish overdue actions."""
        number, oldest_us = await self.context.db.read(partial(gauges.overdue, now_us=now_us))
        if number:
            self.context.bus.publish(self.context.event("overdue", number=number, oldest_ms=oldest_us / 1000))

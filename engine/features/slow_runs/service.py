"""Reports schedules whose runs have become slower."""

import logging
from collections import deque
from functools import partial
from typing import ClassVar

from lodger.engine.core.execution import Claim
from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.features.slow_runs import baselines
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import BatchCommitted
from lodger.engine.node.service import Service
from lodger.engine.policy.pace import MIN_MORE_MS
from lodger.engine.store.actions.monitoring import Track
from lodger.sandbox.outcome import Outcome

_log = logging.getLogger("lodger.node")

ROUND_S = 1.0
#: Ended runs that wait for their review, and seconds from one review of a step to the next.
KEPT = 10_000
FRESH_S = 60.0


class SlowRuns(Service):
    """Reports ``slowed``, once per onset."""

    name: ClassVar[str] = "slow-runs"

    def __init__(self, context: NodeContext, process_metrics: ProcessMetrics) -> None:
        super().__init__(context)
        self._meters = process_metrics
        context.bus.subscribe(BatchCommitted, self._committed)
        self._ended: deque[Claim] = deque(maxlen=KEPT)
        #: Reviewed steps of schedules, until FRESH_S after the first of them.
        self._reviewed: set[Track] = set()
        self._fresh_s = float("-inf")

    def _committed(self, event: BatchCommitted) -> None:
        """Look at attempts that have ended, soon; those that were quick are left out."""
        for claim, finished in event.batch:
            if (
                claim.schedule_id is not None
                and finished.outcome is Outcome.OK
                and finished.usage.wall_ms > MIN_MORE_MS
            ):
                self._ended.append(claim)

    async def round(self) -> float:
        """Review the schedules of ended runs."""
        now_s = self.clock.elapsed_s()
        if now_s >= self._fresh_s:
            self._fresh_s = now_s + FRESH_S
            self._reviewed.clear()
        ended = [self._ended.popleft() for _ in range(len(self._ended))]
        await self._review(ended, self.clock.now_us())
        return ROUND_S

    async def _review(self, ended: list[Claim], now_us: int) -> None:
        """Report the schedules of these runs that have slowed down, of each step once until all are reviewed again."""
        due = [each for each in ended if _track(each) not in self._reviewed]
        if not due:
            return
        self._reviewed |= {_track(each) for each in due}
        changed = await self.context.db.read(partial(baselines.review_runs, claims=due))
        if not changed:
            return
        for each in await self.context.db.write(partial(baselines.store_baselines, reviews=changed, now_us=now_us)):
            claim, found = each.claim, each.slowdown
            if found is None:
                continue
            _log.warning(
                "schedule %s of tenant %s has become slower (%s): runs of script %s took %.0f ms before and take %.0f ms now",
                claim.schedule_id, claim.tenant_id, found.onset.value, claim.script_name, found.from_ms, found.to_ms,
                extra={"tenant_id": claim.tenant_id, "schedule_id": claim.schedule_id, "action_id": claim.action_id},
            )  # fmt: skip
            self._meters.count("lodger_slowdowns_total", found.onset.value)
            self.context.bus.publish(self.context.event(
                "slowed", (claim.tenant_id, claim.schedule_id, claim.action_id), script=claim.script_name, step=claim.step,
                onset=found.onset.value, from_ms=found.from_ms, to_ms=found.to_ms,
            ))  # fmt: skip


def _track(claim: Claim) -> Track:
    """Return the track of a claim: its schedule and step."""
    return str(claim.schedule_id), claim.step

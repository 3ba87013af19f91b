"""Reports runs that take unusually long, and schedules whose runs have become slower."""

import logging
from collections import deque
from functools import partial
from typing import ClassVar

from lodger.engine.core.events import EventKind
from lodger.engine.core.execution import Claim
from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.features.slow_runs import baselines
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import BatchCommitted
from lodger.engine.node.running_attempts import RunningAttempts
from lodger.engine.node.service import Service
from lodger.engine.policy.pace import MIN_MORE_MS, Pace, pace
from lodger.engine.store.actions import monitoring
from lodger.engine.store.actions.monitoring import Track
from lodger.sandbox.outcome import Outcome

_log = logging.getLogger("lodger.node")

ROUND_S = 1.0
#: Ended runs that wait for their review, and seconds for which paces are known.
KEPT = 10_000
FRESH_S = 60.0
_UNKNOWN = pace([])


class SlowRuns(Service):
    """Reports ``slow`` (once per attempt) and ``slowed`` (once per onset)."""

    name: ClassVar[str] = "slow-runs"

    def __init__(self, context: NodeContext, attempts: RunningAttempts, process_metrics: ProcessMetrics) -> None:
        super().__init__(context)
        self._attempts = attempts
        self._meters = process_metrics
        context.bus.subscribe(BatchCommitted, self._committed)
        self._ended: deque[tuple[Claim, float]] = deque(maxlen=KEPT)
        #: Known paces and reviewed tracks, until FRESH_S after the first of them.
        self._paces: dict[Track, Pace] = {}
        self._reviewed: set[Track] = set()
        self._fresh_s = float("-inf")
        self._reported: set[tuple[str, int]] = set()

    def _committed(self, event: BatchCommitted) -> None:
        """Look at attempts that have ended, soon; those that were quick are left out."""
        for claim, finished in event.batch:
            if (
                claim.schedule_id is not None
                and finished.outcome is Outcome.OK
                and finished.usage.wall_ms > MIN_MORE_MS
            ):
                self._ended.append((claim, finished.usage.wall_ms))

    async def round(self) -> float:
        """Compare running and ended runs with the usual pace of their schedules."""
        now_s = self.clock.elapsed_s()
        if now_s >= self._fresh_s:
            self._fresh_s = now_s + FRESH_S
            self._paces.clear()
            self._reviewed.clear()
        await self._look_at_runs(self.clock.now_us())
        return ROUND_S

    async def _look_at_runs(self, now_us: int) -> None:
        """Publish running attempts that take longer than usual."""
        running = self._attempts.running
        # What has ended and is not written yet will be among the ended.
        self._reported &= self._attempts.keys | {(claim.action_id, claim.attempt) for claim, _took in self._ended}
        looked = [(claim, (now_us - claim.started_us) / 1000) for claim in running if claim.schedule_id is not None]
        looked = [each for each in looked if each[1] > MIN_MORE_MS]
        over = len(looked)
        while self._ended:
            looked.append(self._ended.popleft())
        if not looked:
            return
        await self._review([claim for claim, _took in looked[over:]], now_us)
        known = await self._known({(str(claim.schedule_id), claim.step) for claim, _took in looked})
        for number, (claim, took_ms) in enumerate(looked):
            usual, key = known.get((str(claim.schedule_id), claim.step), _UNKNOWN), (claim.action_id, claim.attempt)
            if usual.slow(took_ms) and key not in self._reported:
                self._reported.add(key)
                self._meters.count("lodger_slow_total")
                self._report(
                    "slow", (claim.tenant_id, claim.schedule_id, claim.action_id), script=claim.script_name, step=claim.step,
                    attempt=claim.attempt, took_ms=round(took_ms, 3), median_ms=usual.median_ms, running=number < over,
                )  # fmt: skip

    async def _review(self, ended: list[Claim], now_us: int) -> None:
        """Report the schedules of these runs that have slowed down; each step is reviewed once in FRESH_S at most."""
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
            self._report(
                "slowed", (claim.tenant_id, claim.schedule_id, claim.action_id), script=claim.script_name, step=claim.step,
                onset=found.onset.value, from_ms=found.from_ms, to_ms=found.to_ms,
            )  # fmt: skip

    async def _known(self, tracks: set[Track]) -> dict[Track, Pace]:
        """Return the usual pace of tracks, read if it is not known."""
        unknown = tracks - self._paces.keys()
        if unknown:
            self._paces |= await self.context.db.read(partial(monitoring.paces, tracks=unknown))
        return {track: self._paces[track] for track in tracks if track in self._paces}

    def _report(self, kind: EventKind, action: tuple[str, str | None, str | None], **details: object) -> None:
        """Publish an event for people about an action (tenant, schedule, action)."""
        self.context.bus.publish(self.context.event(kind, action, **details))


def _track(claim: Claim) -> Track:
    """Return the track of a claim: its schedule and step."""
    return str(claim.schedule_id), claim.step

"""Reports runs that take unusually long, and schedules whose runs have become slower."""

import logging
from collections import OrderedDict, deque
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
#: Paces kept, and for how long, seconds.
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
        self._paces: OrderedDict[Track, tuple[float, Pace]] = OrderedDict()
        self._reviewed: OrderedDict[Track, float] = OrderedDict()
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
        now_s = self.clock.elapsed_s()
        due = [each for each in ended if self._reviewed.get(_track(each), -FRESH_S) <= now_s - FRESH_S]
        if not due:
            return
        self._reviewed |= {_track(each): now_s for each in due}
        while len(self._reviewed) > KEPT:
            self._reviewed.popitem(last=False)
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
        """Return the usual pace of tracks, read again when it is old."""
        now_s = self.clock.elapsed_s()
        stale = {track for track in tracks if track not in self._paces or self._paces[track][0] < now_s - FRESH_S}
        if stale:
            found = await self.context.db.read(partial(monitoring.paces, tracks=stale))
            self._paces |= {track: (now_s, each) for track, each in found.items()}
        while len(self._paces) > KEPT:
            self._paces.popitem(last=False)
        return {track: self._paces[track][1] for track in tracks if track in self._paces}

    def _report(self, kind: EventKind, action: tuple[str, str | None, str | None], **details: object) -> None:
        """Publish an event for people about an action (tenant, schedule, action)."""
        self.context.bus.publish(self.context.event(kind, action, **details))


def _track(claim: Claim) -> Track:
    """Return the track of a claim: its schedule and step."""
    return str(claim.schedule_id), claim.step

"""Watches how the node does: slow runs, schedules that slow down, overdue actions, sessions that block each other, lag of the loop."""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.execution import Claim
from lodger.engine.core.metrics import ProcessMetrics, prometheus_text
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import BatchCommitted
from lodger.engine.node.running_attempts import RunningAttempts
from lodger.engine.node.service import Service
from lodger.engine.policy.pace import MIN_MORE_MS, Pace, pace
from lodger.engine.policy.placement import is_overloaded
from lodger.engine.store.actions import monitoring, slowdowns
from lodger.engine.store.actions.monitoring import Track
from lodger.engine.store.connection import lock_waits
from lodger.engine.store.connection.lock_waits import Chain
from lodger.engine.store.platform import gauges, node_rows
from lodger.sandbox.outcome import Outcome

_log = logging.getLogger("lodger.node")

ROUND_S = 1.0
#: How often the ledger is asked what is overdue, rounds.
LEDGER_ROUNDS = 10
#: How many rounds the saturation is averaged over.
SATURATION_ROUNDS = 60
#: Paces kept, and for how long, seconds.
KEPT = 10_000
FRESH_S = 60.0
_UNKNOWN = pace([])


class Monitor(Service):
    """Reports ``slow`` (once per attempt), ``slowed`` (once per onset), ``overdue`` and ``blocked``; sets the process's gauges.

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
        context.bus.subscribe(BatchCommitted, self._committed)
        self._ended: deque[tuple[Claim, float]] = deque(maxlen=KEPT)
        self._paces: OrderedDict[Track, tuple[float, Pace]] = OrderedDict()
        self._reviewed: OrderedDict[Track, float] = OrderedDict()
        self._reported: set[tuple[str, int]] = set()
        self._overloaded: deque[bool] = deque(maxlen=SATURATION_ROUNDS)
        self._rounds = 0
        self._expected_s: float | None = None

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
        """Look once."""
        now_s, meters = self.clock.elapsed_s(), self._meters
        lag_s = 0.0 if self._expected_s is None else max(0.0, now_s - self._expected_s)
        meters.put("lodger_loop_lag_seconds", lag_s)
        self._overloaded.append(is_overloaded(full=self._attempts.free <= 0, lag_s=lag_s))
        meters.put("lodger_node_saturation", sum(self._overloaded) / len(self._overloaded))
        meters.put("lodger_running", len(self._attempts.running))
        await self._look_at_runs(self.clock.now_us())
        if self._rounds % LEDGER_ROUNDS == 0:
            await self._publish_figures(self.clock.now_us())
            await self._look_at_ledger(self.clock.now_us())
        self._rounds += 1
        self._expected_s = self.clock.elapsed_s() + ROUND_S
        return ROUND_S

    async def _look_at_runs(self, now_us: int) -> None:
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
        changed = await self.context.db.read(partial(slowdowns.review_runs, claims=due))
        if not changed:
            return
        for each in await self.context.db.write(partial(slowdowns.store_baselines, reviews=changed, now_us=now_us)):
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
        now_s = self.clock.elapsed_s()
        stale = {track for track in tracks if track not in self._paces or self._paces[track][0] < now_s - FRESH_S}
        if stale:
            found = await self.context.db.read(partial(monitoring.paces, tracks=stale))
            self._paces |= {track: (now_s, each) for track, each in found.items()}
        while len(self._paces) > KEPT:
            self._paces.popitem(last=False)
        return {track: self._paces[track][1] for track in tracks if track in self._paces}

    async def _publish_figures(self, now_us: int) -> None:
        """Write what this process has counted, for the API of another process."""
        for wall, missing in self._walls().items():
            self._meters.put("lodger_wall_active", 0.0 if missing else 1.0, wall)
        publish = partial(
            node_rows.publish_metrics, self.context.store, process=self._meters.process, node=self.context.identity.name,
            figures=prometheus_text(self._meters.read()), now_us=now_us,
        )  # fmt: skip
        await self.context.db.write(publish, quiet=True)

    def _report(self, kind: str, action: tuple[str, str | None, str | None] | None = None, **details: object) -> None:
        self.context.bus.publish(self.context.event(kind, action, **details))

    async def _look_at_ledger(self, now_us: int) -> None:
        def look(connection: Connection) -> tuple[tuple[int, int], list[Chain]]:
            return gauges.overdue(connection, now_us), lock_waits.chains(connection)

        (number, oldest_us), chains = await self.context.db.read(look)
        if number:
            self._report("overdue", number=number, oldest_ms=oldest_us / 1000)
        if chains:
            first = chains[0]
            self._report(
                "blocked", sessions=len(chains), waited_s=first.waited_s, query=first.waits.query,
                by=first.blockers[-1].query if first.blockers else None,
            )  # fmt: skip


def _track(claim: Claim) -> Track:
    return str(claim.schedule_id), claim.step

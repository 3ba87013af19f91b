"""Watches over how the node does: runs that take unusually long, what is overdue, who blocks whom, how late the loop is."""

from __future__ import annotations

from collections import OrderedDict, deque
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from sqlalchemy import Connection

from lodger.engine.core.execution import Claim
from lodger.engine.core.metrics import prometheus_text
from lodger.engine.node.service import Service
from lodger.engine.policy.pace import MIN_MORE_MS, Pace, pace
from lodger.engine.store.actions import monitoring
from lodger.engine.store.actions.monitoring import Track
from lodger.engine.store.connection import blocking
from lodger.engine.store.connection.blocking import Chain
from lodger.engine.store.platform import gauges, node_rows
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from lodger.engine.core.execution import Finished
    from lodger.engine.node.node import Node

ROUND_S = 1.0
#: How often the ledger is asked what is overdue, rounds.
LEDGER_ROUNDS = 10
#: Paces kept, and for how long, seconds.
KEPT = 10_000
FRESH_S = 60.0
_UNKNOWN = pace([])


class Monitor(Service):
    """Tells ``slow`` (once per attempt), ``overdue`` and ``blocked``; sets the gauges of the process."""

    name: ClassVar[str] = "monitor"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._ended: deque[tuple[Claim, float]] = deque(maxlen=KEPT)
        self._paces: OrderedDict[Track, tuple[float, Pace]] = OrderedDict()
        self._told: set[tuple[str, int]] = set()
        self._rounds = 0
        self._expected_s: float | None = None

    def ended(self, claim: Claim, finished: Finished) -> None:
        """Look at an attempt that has ended, soon; what was quick is none of the monitor's business."""
        if claim.schedule_id is not None and finished.outcome is Outcome.OK and finished.usage.wall_ms > MIN_MORE_MS:
            self._ended.append((claim, finished.usage.wall_ms))

    async def round(self) -> float:
        """Look once."""
        node, now_s = self._node, self.clock.elapsed_s()
        meters = node.engine.meters
        if self._expected_s is not None:
            meters.put("lodger_loop_lag_seconds", max(0.0, now_s - self._expected_s))
        meters.put("lodger_running", len(node.dispatcher.running))
        await self._look_at_runs(self.clock.now_us())
        if self._rounds % LEDGER_ROUNDS == 0:
            await self._publish_figures(self.clock.now_us())
            await self._look_at_ledger(self.clock.now_us())
        self._rounds += 1
        self._expected_s = self.clock.elapsed_s() + ROUND_S
        return ROUND_S

    async def _look_at_runs(self, now_us: int) -> None:
        running = self._node.dispatcher.claims()
        self._told &= {(claim.action_id, claim.attempt) for claim in running} | {
            (claim.action_id, claim.attempt) for claim, _took in self._ended
        }
        looked = [(claim, (now_us - claim.started_us) / 1000) for claim in running if claim.schedule_id is not None]
        looked = [each for each in looked if each[1] > MIN_MORE_MS]
        over = len(looked)
        while self._ended:
            looked.append(self._ended.popleft())
        if not looked:
            return
        known = await self._known({(str(claim.schedule_id), claim.step) for claim, _took in looked})
        for number, (claim, took_ms) in enumerate(looked):
            usual, key = known.get((str(claim.schedule_id), claim.step), _UNKNOWN), (claim.action_id, claim.attempt)
            if usual.slow(took_ms) and key not in self._told:
                self._told.add(key)
                self._node.engine.meters.count("lodger_slow_total")
                self._node.tell(
                    "slow", (claim.tenant_id, claim.schedule_id, claim.action_id), script=claim.script_name, step=claim.step,
                    attempt=claim.attempt, took_ms=round(took_ms, 3), median_ms=usual.median_ms, running=number < over,
                )  # fmt: skip

    async def _known(self, tracks: set[Track]) -> dict[Track, Pace]:
        now_s = self.clock.elapsed_s()
        stale = {track for track in tracks if track not in self._paces or self._paces[track][0] < now_s - FRESH_S}
        if stale:
            found = await self._node.pen.read(partial(monitoring.paces, tracks=stale))
            self._paces |= {track: (now_s, each) for track, each in found.items()}
        while len(self._paces) > KEPT:
            self._paces.popitem(last=False)
        return {track: self._paces[track][1] for track in tracks if track in self._paces}

    async def _publish_figures(self, now_us: int) -> None:
        """Write what this process has counted, for the API of another process."""
        node, meters = self._node, self._node.engine.meters
        publish = partial(
            node_rows.publish_figures, node.books, process=meters.process, node=node.name,
            figures=prometheus_text(meters.read()), now_us=now_us,
        )  # fmt: skip
        await node.pen.write(publish, quiet=True)

    async def _look_at_ledger(self, now_us: int) -> None:
        def look(connection: Connection) -> tuple[tuple[int, int], list[Chain]]:
            return gauges.late(connection, now_us), blocking.chains(connection)

        (number, oldest_us), chains = await self._node.pen.read(look)
        if number:
            self._node.tell("overdue", number=number, oldest_ms=oldest_us / 1000)
        if chains:
            first = chains[0]
            self._node.tell(
                "blocked", sessions=len(chains), waited_s=first.waited_s, query=first.waits.query,
                by=first.blockers[-1].query if first.blockers else None,
            )  # fmt: skip

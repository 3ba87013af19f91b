"""Runs shadows dry beside the live versions: on the records of committed attempts, one at a time, while slots are free."""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.clock import from_us_or_none
from lodger.engine.core.execution import Claim
from lodger.engine.features.replays.agreement import agreement
from lodger.engine.features.replays.attempt_record import FROM_OUTSIDE
from lodger.engine.features.replays.recording import Recording
from lodger.engine.features.shadows import shadows
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import BatchCommitted
from lodger.engine.node.running_attempts import RunningAttempts, key_of
from lodger.engine.node.service import Service
from lodger.engine.store.usage import usage
from lodger.engine.trials.claims import Source
from lodger.sandbox.job import Runs

#: Most runs that wait for their comparison, of all tenants and of one, each with its record in memory.
MAX_WAITING, MAX_OF_TENANT = 16, 4
#: How long a run waits for its comparison, seconds.
PATIENCE_S = 60.0
#: Seconds between two looks for a free slot.
LOOK_S = 0.25
_log = logging.getLogger("lodger.node")


@dataclass(frozen=True, slots=True)
class _Waiting:
    claim: Claim
    recording: Recording
    shadow: str
    since_s: float


class ShadowRuns(Service):
    """Compares committed attempts with the shadows of their scripts.

    A shadow never delays an attempt: it begins after the commit and in a free slot only, and a run that has to wait for
    too long is counted as missed. It has no host side but the record, so that it can change, send and read nothing.

    Args:
        pool: runs it, in the walls of every attempt.
    """

    name: ClassVar[str] = "shadow-runs"

    def __init__(self, context: NodeContext, attempts: RunningAttempts, pool: Runs) -> None:
        super().__init__(context)
        self._attempts = attempts
        self._pool = pool
        self._waiting: list[_Waiting] = []
        #: By tenant and shadow.
        self._missed: Counter[tuple[str, str]] = Counter()
        context.bus.subscribe(BatchCommitted, self._committed)

    @property
    def waiting(self) -> int:
        """Number of runs that wait for their comparison."""
        return len(self._waiting)

    def _committed(self, event: BatchCommitted) -> None:
        """Queue committed attempts of scripts with a shadow."""
        lost = {key_of(claim) for claim in event.committed.lost}
        for claim, finished in event.batch:
            recording = finished.recording
            if not isinstance(recording, Recording) or recording.shadow is None or key_of(claim) in lost:
                continue
            if finished.outcome in FROM_OUTSIDE:
                continue
            one = _Waiting(claim, recording, recording.shadow, self.clock.elapsed_s())
            mine = sum(each.claim.tenant_id == claim.tenant_id for each in self._waiting)
            if len(self._waiting) < MAX_WAITING and mine < MAX_OF_TENANT:
                self._waiting.append(one)
            else:
                self._miss(one)
            self.wake()

    async def round(self) -> float:
        """Compare waiting runs while slots are free."""
        while self._waiting and len(self._attempts.running) < self.context.settings.slots:
            await self._compare(self._waiting.pop(0))
        late_s = self.clock.elapsed_s() - PATIENCE_S
        while self._waiting and self._waiting[0].since_s < late_s:
            self._miss(self._waiting.pop(0))
        if self._missed:
            missed = [(tenant, shadow, number) for (tenant, shadow), number in self._missed.items()]
            await self.context.db.write(partial(shadows.miss, missed=missed))
            self._missed.clear()
        return LOOK_S if self._waiting else 3600.0

    def _miss(self, one: _Waiting) -> None:
        """Count a run that is not compared."""
        self._missed[one.claim.tenant_id, one.shadow] += 1

    async def _compare(self, one: _Waiting) -> None:
        """Run a shadow on the record of one attempt, and store the comparison."""
        claim, context = one.claim, self.context
        try:
            found, used_up = await context.db.read(partial(self._load, tenant_id=claim.tenant_id, shadow=one.shadow))
            if found is None:
                return
            if used_up:
                self._miss(one)
                return
            record = await asyncio.to_thread(one.recording.record)
            live = claim.modules if claim.wasm is None else claim.wasm
            slot = from_us_or_none(claim.slot_us)
            run, cpu_ms = await agreement(self._pool, record, live, found, slot, claim.tenant_id)
        except Exception:
            self._miss(one)
            raise
        after = await context.db.write(
            lambda connection: shadows.add(context.store, connection, claim.tenant_id, one.shadow, run, cpu_ms)
        )
        if after is not None and after.state != shadows.RUNNING:
            details = after.summary()
            _log.info("the shadow of a script of tenant %s has ended: %s", claim.tenant_id, details)
            context.bus.publish(
                context.event("shadow", (claim.tenant_id, claim.schedule_id, claim.action_id), **details)
            )

    def _load(self, connection: Connection, tenant_id: str, shadow: str) -> tuple[Source | None, bool]:
        """Return the source of a running shadow, and whether the tenant's CPU time for trials is used up."""
        found = shadows.load(connection, tenant_id, shadow)
        return found, found is not None and bool(usage.used_up(self.context.store, connection, tenant_id))

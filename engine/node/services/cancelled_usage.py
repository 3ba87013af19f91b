"""Writes logs and usage of attempts that were cancelled while they ran."""

import math
from functools import partial
from typing import ClassVar

from lodger.engine.core.execution import Claim
from lodger.engine.effects import cancelled_usage
from lodger.engine.effects.finished import Finished
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import AttemptStopped, BatchCommitted, CancelledWritten
from lodger.engine.node.running_attempts import key_of
from lodger.engine.node.service import Service
from lodger.engine.store.usage.usage import Warned

#: Maximum number of cancelled attempts that wait to be written: those of a lost lease are dropped.
MAX_CANCELLED = 10_000


class CancelledUsage(Service):
    """Writes a moment after the cancellation."""

    name: ClassVar[str] = "cancelled-usage"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._waiting: list[tuple[Claim, Finished]] = []
        context.bus.subscribe(AttemptStopped, lambda event: self._put(event.claim, event.finished))
        context.bus.subscribe(BatchCommitted, self._committed)

    def _committed(self, event: BatchCommitted) -> None:
        """Take attempts that ended by themselves just when they were cancelled."""
        lost = {key_of(claim) for claim in event.committed.lost}
        for claim, finished in event.batch:
            if key_of(claim) in lost:
                self._put(claim, finished)

    def _put(self, claim: Claim, finished: Finished) -> None:
        """Queue the end of a cancelled attempt; a full queue drops it."""
        if len(self._waiting) < MAX_CANCELLED:
            self._waiting.append((claim, finished))
            self.wake()

    async def round(self) -> float:
        """Write the waiting logs and usage."""
        if self._waiting:
            await self.flush()
        return math.inf

    async def flush(self) -> None:
        """Write the waiting logs and usage in one transaction."""
        context, lease = self.context, self.context.identity.lease
        batch = list(self._waiting)
        if batch and lease is not None:
            now = self.clock.now_us()
            warned: list[Warned] = []
            write = partial(cancelled_usage.write, context.store, lease=lease, batch=batch, now_us=now, warned=warned)
            written = {key_of(claim) for claim in await context.db.write(write)}
            for each in warned:
                each.report(context.bus, now)
            context.bus.publish(CancelledWritten(tuple(each for each in batch if key_of(each[0]) in written)))
        del self._waiting[: len(batch)]

"""Writes what cancelled attempts leave, a moment after the others have gone on without them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from lodger.engine.core.execution import Claim, Finished
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import cancelled_usage
from lodger.engine.store.usage.usage import Warned

if TYPE_CHECKING:
    from lodger.engine.node.node import Node

#: Most that wait: what a node has lost its lease for is dropped.
KEPT = 10_000


class Remains(Service):
    """Logs and usage of attempts that were cancelled while they ran."""

    name: ClassVar[str] = "remains"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._waiting: list[tuple[Claim, Finished]] = []

    def put(self, claim: Claim, finished: Finished) -> None:
        """Hand over what is left of an attempt."""
        if len(self._waiting) < KEPT:
            self._waiting.append((claim, finished))
            self.nudge()

    async def round(self) -> float:
        """Write what waits."""
        if self._waiting:
            await self.flush()
        return 3600.0

    async def flush(self) -> None:
        """Write what waits, in one transaction."""
        node, lease = self._node, self._node.lease
        batch = list(self._waiting)
        if batch and lease is not None:
            now = self.clock.now_us()
            warned: list[Warned] = []
            write = partial(cancelled_usage.write, node.books, lease=lease, batch=batch, now_us=now, warned=warned)
            written = await node.pen.write(write)
            node.told_warned(warned)
            kept = {(claim.action_id, claim.attempt) for claim in written}
            for claim, finished in batch:
                if (claim.action_id, claim.attempt) in kept:
                    whose = (claim.tenant_id, claim.schedule_id, claim.action_id)
                    node.tell("killed", whose, attempt=claim.attempt, step=claim.step, finished=finished)
        del self._waiting[: len(batch)]

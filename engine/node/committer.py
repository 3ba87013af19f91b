"""Batched commits: whatever has ended while the last transaction was written goes into the next one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from sqlalchemy import Connection

from lodger.engine.errors import Unavailable
from lodger.engine.ledger import commits
from lodger.engine.ledger.claims import Lease
from lodger.engine.ledger.commits import Committed
from lodger.engine.node.executor import Claim, Finished
from lodger.engine.node.service import Service
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from lodger.engine.node.node import Node


class Committer(Service):
    """The one way by which an attempt's end reaches the ledger."""

    name: ClassVar[str] = "committer"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._waiting: list[tuple[Claim, Finished]] = []
        #: So many of the first that wait are written each alone: one of them cannot be written.
        self._alone = 0

    def put(self, claim: Claim, finished: Finished) -> None:
        """Hand over an attempt that has ended."""
        self._waiting.append((claim, finished))
        self.nudge()

    def waiting(self) -> set[tuple[str, int]]:
        """Attempts (action id, number) that have ended and wait to be written."""
        return {(claim.action_id, claim.attempt) for claim, _finished in self._waiting}

    async def round(self) -> float:
        """Write what waits."""
        if self._waiting:
            await self.flush()
        return 0.0 if self._waiting else 3600.0

    async def flush(self) -> None:
        """Write what waits, in one transaction; on an error all of it waits again.

        An end that nobody can write (not for want of room or of a connection) is found by writing each alone, and
        becomes a fault of ours: one attempt never keeps the others from being written.
        """
        lease = self._node.lease
        batch = self._waiting[: 1 if self._alone else self._node.settings.commit_batch]
        if not batch:
            return
        if lease is None:
            # The lease was lost: whatever was claimed under it is another's by now.
            committed = Committed((), tuple(claim for claim, _finished in batch))
        else:
            try:
                committed = await self._node.pen.write(partial(self._commit, lease=lease, batch=batch))
            except Unavailable:
                raise
            except Exception as error:
                if len(batch) > 1:
                    self._alone = len(batch)
                else:
                    claim, finished = batch[0]
                    if finished.outcome is not Outcome.ENGINE_FAULT:
                        self._waiting[0] = (claim, commits.our_fault(finished, error))
                raise
        del self._waiting[: len(batch)]
        self._alone = max(0, self._alone - len(batch))
        self._node.told_commit(batch, committed)

    def _commit(self, connection: Connection, lease: Lease, batch: list[tuple[Claim, Finished]]) -> Committed:
        node = self._node
        return commits.commit(node.books, connection, lease, batch, self.clock.now_us(), node.apply_effects)

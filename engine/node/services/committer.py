"""Batched commits: ends that came during the last transaction, or within half of ``ahead_s``, share the next one."""

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import AttemptFinished, AttemptStopped
from lodger.engine.core.execution import Claim, Finished
from lodger.engine.effects import outcome_commit
from lodger.engine.effects.database_errors import TransactionLost
from lodger.engine.effects.outcome_commit import Committed
from lodger.engine.node.context import NodeContext, Write
from lodger.engine.node.node_events import BatchCommitted, BudgetsWarned, CancelledWritten
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import cancelled_usage, endings
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.usage.usage import Warned
from lodger.sandbox.outcome import Outcome

_log = logging.getLogger("lodger.node")
#: How long an attempt waits for rows that another transaction holds before it is in conflict, and between two looks, seconds.
PATIENCE_S = 5.0
LOOK_S = 0.05
#: Most cancelled attempts that wait for their logs and usage to be written: those of a lost lease are dropped.
MAX_CANCELLED = 10_000


class Committer(Service):
    """The one way by which an attempt's end reaches the ledger.

    Args:
        write: writes ends in a transaction.
        gathers_s: returns how long ended attempts may wait to share a transaction, seconds.
    """

    name: ClassVar[str] = "committer"

    def __init__(self, context: NodeContext, write: Write, gathers_s: Callable[[], float]) -> None:
        super().__init__(context)
        self._write = write
        self._gathers_s = gathers_s
        context.bus.subscribe(AttemptFinished, self._put)
        self._waiting: list[tuple[Claim, Finished]] = []
        #: So many of the first that wait are written each alone: one of them cannot be written.
        self._alone = 0
        #: Attempts (action id, number) that wait for a held lock: since when, and when they are looked at again.
        self._held_up: dict[tuple[str, int], tuple[float, float]] = {}
        #: Attempts (action id, number) that were being written when the database fell silent: they may have been.
        self._doubted: set[tuple[str, int]] = set()

    def _put(self, event: AttemptFinished) -> None:
        self._waiting.append((event.claim, event.finished))
        self.wake()

    async def round(self) -> float:
        """Write what waits."""
        if self._ready():
            if (wait := self._gathers_s()) > 0:
                await self.clock.sleep(wait)
            await self.flush()
        if self._ready():
            return 0.0
        if not self._held_up:
            return math.inf
        return max(0.0, min(look for _since, look in self._held_up.values()) - self.clock.elapsed_s())

    def _ready(self) -> list[tuple[Claim, Finished]]:
        if not self._held_up:
            return self._waiting
        now = self.clock.elapsed_s()
        return [each for each in self._waiting if self._held_up.get(_key(each[0]), (0.0, now))[1] <= now]

    async def flush(self) -> None:
        """Write what waits, in one transaction; on an error all of it waits again.

        An end that cannot be written (not for want of room or of a connection) is found by writing each alone, and
        becomes a fault of ours: one attempt never keeps the others from being written.
        """
        async with self.context.claim_lock:
            await self._flush()

    async def _flush(self) -> None:
        lease = self.context.identity.lease
        batch = self._ready()[: 1 if self._alone else self.context.settings.commit_batch]
        if not batch:
            return
        if lease is None:
            # The lease was lost: whatever was claimed under it is another's by now, but for what was written before.
            committed = Committed((), tuple(claim for claim, _finished in batch))
            if any(_key(claim) in self._doubted for claim in committed.lost):
                committed = await self.context.db.read(partial(self._answered, committed=committed, batch=batch))
            self._written(batch, committed)
        else:
            try:
                await self._write(
                    partial(self._commit, lease=lease, batch=batch),
                    lambda committed: self._written(batch, committed),
                    lambda committed: committed.is_plain,
                )
            except Unavailable:
                self._doubted.update(_key(claim) for claim, _finished in batch)
                raise
            except TransactionLost as gone:
                # All of them again, without what that one wrote: a platform's trigger delays no other run.
                _log.warning(
                    "the effects of a run were refused; the other runs of its batch are committed again: %s", gone
                )
                self._refuse(gone)
                return
            except Exception as error:
                if len(batch) > 1:
                    self._alone = len(batch)
                else:
                    claim, finished = batch[0]
                    if finished.outcome is not Outcome.ENGINE_FAULT:
                        place = self._waiting.index(batch[0])
                        self._waiting[place] = (claim, outcome_commit.failed_commit(finished, error))
                raise

    def _refuse(self, gone: TransactionLost) -> None:
        """Let one that waits end as refused."""
        for place, (claim, finished) in enumerate(self._waiting):
            if claim.action_id == gone.action_id:
                self._waiting[place] = (claim, outcome_commit.failed_commit(finished, gone))

    def _written(self, batch: list[tuple[Claim, Finished]], committed: Committed) -> None:
        held_up = {_key(claim) for claim in committed.waiting}
        now = self.clock.elapsed_s()
        for key in held_up:
            since, look = self._held_up.get(key, (now, now))
            # Twice as long as it has waited already, at most a second: a lock is mostly gone at once.
            self._held_up[key] = (since, now + min(1.0, max(LOOK_S, look - since)))
        over = [each for each in batch if _key(each[0]) not in held_up]
        gone = {_key(claim) for claim, _finished in over}
        self._waiting = [each for each in self._waiting if _key(each[0]) not in gone]
        self._doubted -= gone
        for key in gone:
            self._held_up.pop(key, None)
        self._alone = max(0, self._alone - len(batch))
        self.context.bus.publish(BatchCommitted(tuple(over), committed))

    def _commit(
        self, connection: Connection, lease: Lease, batch: list[tuple[Claim, Finished]]
    ) -> tuple[Committed, None]:
        now = self.clock.elapsed_s()
        waited_long = {key[0] for key, (since, _look) in self._held_up.items() if now - since >= PATIENCE_S}
        committed = outcome_commit.commit(
            self.context.store, connection, lease, batch, self.clock.now_us(), waited_long=waited_long
        )
        return self._answered(connection, committed, batch), None

    def _answered(self, connection: Connection, committed: Committed, batch: list[tuple[Claim, Finished]]) -> Committed:
        """Find among what seems lost those ends that were written, and only their answer was lost on the way."""
        seems = {_key(claim) for claim in committed.lost} & self._doubted
        if not seems:
            return committed
        settled = endings.find_committed(
            connection, self.context.identity.id, [each for each in batch if _key(each[0]) in seems]
        )
        there = {(each.action_id, each.attempt) for each in settled}
        lost = tuple(claim for claim in committed.lost if _key(claim) not in there)
        return replace(committed, settled=(*committed.settled, *settled), lost=lost)


class CancelledUsage(Service):
    """Writes logs and usage of attempts that were cancelled while they ran, a moment after the others have gone on without them."""

    name: ClassVar[str] = "cancelled-usage"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._waiting: list[tuple[Claim, Finished]] = []
        context.bus.subscribe(AttemptStopped, lambda event: self._put(event.claim, event.finished))
        context.bus.subscribe(BatchCommitted, self._committed)

    def _committed(self, event: BatchCommitted) -> None:
        """Take attempts that ended by themselves just when they were cancelled."""
        lost = {_key(claim) for claim in event.committed.lost}
        for claim, finished in event.batch:
            if _key(claim) in lost:
                self._put(claim, finished)

    def _put(self, claim: Claim, finished: Finished) -> None:
        if len(self._waiting) < MAX_CANCELLED:
            self._waiting.append((claim, finished))
            self.wake()

    async def round(self) -> float:
        """Write what waits."""
        if self._waiting:
            await self.flush()
        return math.inf

    async def flush(self) -> None:
        """Write what waits, in one transaction."""
        context, lease = self.context, self.context.identity.lease
        batch = list(self._waiting)
        if batch and lease is not None:
            now = self.clock.now_us()
            warned: list[Warned] = []
            write = partial(cancelled_usage.write, context.store, lease=lease, batch=batch, now_us=now, warned=warned)
            written = {_key(claim) for claim in await context.db.write(write)}
            context.bus.publish(BudgetsWarned(tuple(warned)))
            context.bus.publish(CancelledWritten(tuple(each for each in batch if _key(each[0]) in written)))
        del self._waiting[: len(batch)]


def _key(claim: Claim) -> tuple[str, int]:
    return claim.action_id, claim.attempt

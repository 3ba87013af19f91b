"""Who runs: takes actions for the free slots and watches over their attempts."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from lodger.engine.core.execution import Claim, Finished, Stopped
from lodger.engine.node.service import Service
from lodger.engine.policy.placement import Restraint, Room, long_slots
from lodger.engine.store.queue import ready_queue
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from lodger.engine.node.node import Node

_log = logging.getLogger("lodger.node")

#: Later than anything is due.
FOREVER_US = 2**62
#: While more slots are due than one tick takes, naming them goes first: a claim comes no sooner than so long after the last one,
#: and starts so many at most; but after so long it claims as ever, whatever is due. Seconds, attempts, seconds.
GIVES_WAY_S, GIVES_WAY_MOST, PATIENCE_S = 0.05, 16, 2.0


class Dispatcher(Service):
    """Claims no more than may start at once; an attempt holds its slot until it is committed."""

    name: ClassVar[str] = "dispatcher"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self.running: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._claims: dict[tuple[str, int], Claim] = {}
        self._vain = 0
        self._restraint = Restraint()
        self._claimed_s = float("-inf")
        #: Whether a claim is under way, and whether one may have been written whose answer never came.
        self.claiming = self.in_doubt = False
        self._empty = asyncio.Event()
        self._empty.set()

    async def round(self) -> float:
        """Claim for the free slots; wait for the next instant at which something may start."""
        node = self._node
        free = self.slots - len(self.running)
        lease = node.lease
        if lease is None:
            return node.settings.poll_s
        if free <= 0:
            return node.patience_s
        behind = self._gives_way()
        if behind and (wait := self._claimed_s + GIVES_WAY_S - self.clock.elapsed_s()) > 0:
            return wait
        # The answer stands until somebody commits: it names the next instant, however far away that is.
        ask = partial(ready_queue.next_startable, until_us=FOREVER_US, labels=lease.labels)
        upcoming = await node.pen.standing(("startable", lease.labels), ask)
        now = self.clock.now_us()
        if upcoming is None:
            return node.patience_s
        if upcoming > now:
            return min(node.patience_s, (upcoming - now) / 1_000_000)
        self.claiming, self._claimed_s = True, self.clock.elapsed_s()
        room = self.room()
        try:
            claimed = await node.claim(lease, replace(room, slots=min(room.slots, GIVES_WAY_MOST)) if behind else room)
        except Exception:
            self.in_doubt = True
            raise
        finally:
            self.claiming = False
        if node.lease is None or node.lease.epoch != lease.epoch:
            # Lost while they were claimed: they are another's, or this node's again when it is registered anew.
            return 0.0
        for claim in claimed:
            self.begin(claim)
        # Something is due that this node may not start: another node has it, or a budget or the node's memory.
        self._vain = 0 if claimed else min(self._vain + 1, 10)
        return min(node.settings.poll_s, 0.005 * 2**self._vain) if self._vain else 0.0

    def _gives_way(self) -> bool:
        """Whether the ticker is in the midst of more slots than it could name at once."""
        since = self._node.ticker.behind_s
        return since is not None and self.clock.elapsed_s() - since < PATIENCE_S

    @property
    def slots(self) -> int:
        """How many attempts may run here at once: fewer than it has slots while it hardly keeps its lease."""
        return self._restraint.of(self._node.settings.slots)

    def renewed(self, after_s: float) -> None:
        """Hear that the lease was renewed so long after the renewal before: one that comes late lets the node claim less."""
        settings = self._node.settings
        before, kept_s = self._restraint, settings.lease_s - settings.surrendering_s
        self._restraint = before.renewed(after_s, kept_s, settings.slots)
        if self._restraint.halvings < before.halvings:
            self.nudge()

    def held_back(self) -> None:
        """Hear that the lease was lost: what is claimed under the next one is less at first."""
        self._restraint = self._restraint.troubled(self._node.settings.slots)

    def room(self) -> Room:
        """Give what of this node is free."""
        room = Room(self.slots, long_slots(self.slots), self._node.settings.memory_reserved_bytes)
        for claim in self._claims.values():
            room = room.without(1, claim.limits)
        return room

    def claims(self) -> list[Claim]:
        """Give what runs here or waits to be written."""
        return list(self._claims.values())

    def begin(self, claim: Claim) -> None:
        """Start an attempt that this node has claimed."""
        key = (claim.action_id, claim.attempt)
        self._empty.clear()
        self._claims[key] = claim
        self.running[key] = asyncio.create_task(self._attempt(claim), name=f"lodger-attempt-{claim.action_id}")

    async def _attempt(self, claim: Claim) -> None:
        try:
            finished = await self._node.executor.execute(claim)
        except asyncio.CancelledError as killed:
            # The attempt is this node's no more; whoever took it away has written the row, without what only we know.
            if isinstance(killed, Stopped):
                self._node.remains.put(claim, killed.remains)
            self.forget(claim)
            return
        except Exception as error:  # noqa: BLE001 - an executor must answer; that it did not is our fault, never the tenant's
            _log.error("attempt %d of action %s: %s: %s", claim.attempt, claim.action_id, type(error).__name__, error,
                       exc_info=error)  # fmt: skip
            finished = Finished(Outcome.ENGINE_FAULT, error=ScriptError(type(error).__name__, str(error)))
        self._node.committer.put(claim, finished)

    def forget(self, claim: Claim) -> None:
        """Free the slot of an attempt that is over."""
        self.running.pop((claim.action_id, claim.attempt), None)
        self._claims.pop((claim.action_id, claim.attempt), None)
        self._node.scribe.over(claim)
        if not self.running:
            self._empty.set()
        self.nudge()

    def kill(self, keys: set[tuple[str, int]] | None = None) -> None:
        """Kill the workers of these attempts (action id, attempt number), or of all."""
        for key in list(self.running) if keys is None else keys:
            task = self.running.get(key)
            # Once: a second time it would not live to tell what it leaves.
            if task is not None and not task.cancelling():
                task.cancel()

    async def drained(self) -> None:
        """Wait until nothing runs any more."""
        await self._empty.wait()

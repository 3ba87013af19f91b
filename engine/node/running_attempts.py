"""The attempts of a node, and the slots that they hold."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import AttemptReleased, AttemptStarted, Fault, LeaseLost, LeaseRenewed, SlotFreed
from lodger.engine.core.execution import SLOT, Claim
from lodger.engine.core.telemetry import json_logs
from lodger.engine.effects.finished import Execute, Finished, Stopped
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import AttemptFinished, AttemptStopped, BatchCommitted
from lodger.engine.node.slots import Slots
from lodger.engine.policy.placement import Room, SlotReduction, long_slots
from lodger.sandbox.job import CallHandlerGone
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.workers import verdict

_log = logging.getLogger("lodger.node")
#: An attempt: id of its action, and its number.
Key = tuple[str, int]
#: An attempt that has begun so long ago and holds a slot computes for long, seconds; no claimed attempt waits longer for a slot.
LONG_S = 0.05
#: No attempt waits longer for its due time, seconds: the largest ``ahead_s``.
MAX_AHEAD_S = 1.0


def key_of(claim: Claim) -> Key:
    """Return the key of an attempt in this process."""
    return claim.action_id, claim.attempt


class RunningAttempts:
    """The attempts of this node: they wait for a slot; hold one each, and wait until they are due or compute; wait for an answer
    without one; or have ended and wait to be written.

    Attributes:
        claiming: a transaction with which a claim may come is being written.
        ends_meanwhile: number of attempts that ended while the last such transaction was written.
        in_doubt: a claim may have been written without its answer having come.
    """

    def __init__(self, context: NodeContext, execute: Execute) -> None:
        self._context = context
        self._clock = context.clock
        self._execute = execute
        self._claims: dict[Key, Claim] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._ended: set[Key] = set()
        #: When each has begun, on the clock of durations.
        self._begun_s: dict[Key, float] = {}
        self.claiming = self.in_doubt = False
        self.ends_meanwhile = 0
        self._slot_reduction = SlotReduction()
        self._in_flight_max = context.settings.in_flight_max
        self._slots = Slots(lambda: self.slots, lambda: context.bus.publish(SlotFreed()))
        self._empty = asyncio.Event()
        self._empty.set()
        context.bus.subscribe(BatchCommitted, self._committed)
        context.bus.subscribe(LeaseRenewed, self._renewed)
        context.bus.subscribe(LeaseLost, self._lost)

    def __len__(self) -> int:
        return len(self._claims)

    @property
    def keys(self) -> set[Key]:
        """The keys of all attempts."""
        return set(self._claims)

    @property
    def ended(self) -> set[Key]:
        """The keys of those that have ended and wait to be written."""
        return set(self._ended)

    @property
    def claims(self) -> list[Claim]:
        """The claims of all attempts."""
        return list(self._claims.values())

    @property
    def running(self) -> list[Claim]:
        """The claims of the attempts that have not ended."""
        return [claim for key, claim in self._claims.items() if key not in self._ended]

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks of all attempts."""
        return list(self._tasks.values())

    # ---- slots

    @property
    def slots(self) -> int:
        """Number of attempts that may compute here at once: fewer than the settings say while the node hardly keeps its lease."""
        return self._slot_reduction.of(self._context.settings.slots)

    @property
    def free(self) -> int:
        """How many more attempts may start: a computing one holds a slot, and at most as many as there are slots wait to be written."""
        free = self._slots.free
        return min(free, free + self.slots - len(self._ended), self._in_flight_max - len(self._claims))

    @property
    def over(self) -> int:
        """How many attempts may start beyond the slots, for tenants that have none here: some, while long computations hold all slots."""
        long_s = self._clock.elapsed_s() - LONG_S
        if sum(since_s <= long_s and self._slots.holds(key) for key, since_s in self._begun_s.items()) < self.slots:
            return 0
        over = max(1, self.slots // 2)
        return min(self.slots + over - self._slots.held, self._in_flight_max - len(self._claims))

    @property
    def waiting(self) -> int:
        """How many attempts wait for an answer and hold no slot."""
        return self._slots.waiting

    def room(self) -> Room:
        """Return the memory and slots that a claim may use: the free ones, and those expected to be free when its transaction is written.

        As many attempts are expected to end meanwhile as during the last transaction: processors need not wait for the next one.
        """
        room = Room(self.slots, long_slots(self.slots), self._context.settings.memory_reserved_bytes)
        held_bytes = 0
        for claim in self.running:
            waiting_bytes = self._slots.memory_bytes(key_of(claim))
            if waiting_bytes is None:
                room = room.without(1, claim.limits)
            else:
                held_bytes += waiting_bytes
        expected = min(
            self.ends_meanwhile, self.slots // 2, self._in_flight_max - len(self._claims) - max(0, self.free)
        )
        return replace(room, slots=self.free + expected, memory_bytes=room.memory_bytes - held_bytes)

    def _renewed(self, event: LeaseRenewed) -> None:
        """Reduce the slots after a late renewal, and restore them after one in time."""
        settings = self._context.settings
        kept_s = settings.lease_s - settings.surrendering_s
        self._slot_reduction = self._slot_reduction.renewed(event.after_s, kept_s, settings.slots)
        self._slots.hand_on()

    def _lost(self, _event: LeaseLost) -> None:
        """Kill all attempts, and reduce the slots under the next lease."""
        self.kill()
        self._slot_reduction = self._slot_reduction.troubled(self._context.settings.slots)

    # ---- life of an attempt

    def begin(self, claims: Iterable[Claim]) -> None:
        """Start claimed attempts, each when it is due."""
        now_us, now_s = self._clock.now_us(), self._clock.elapsed_s()
        for claim in claims:
            key = key_of(claim)
            if self._slots.free > 0 or self.over > 0:
                self._slots.start(key)
            end_s = now_s + min((claim.due_us - now_us) / 1_000_000, MAX_AHEAD_S)
            task = asyncio.create_task(self._attempt(key, claim, end_s), name=f"lodger-attempt-{claim.action_id}")
            task.add_done_callback(partial(self._over, claim))
            self._empty.clear()
            self._claims[key], self._tasks[key], self._begun_s[key] = claim, task, now_s

    async def _wait_for_start(self, key: Key, claim: Claim, end_s: float) -> None:
        """Wait until an attempt has a slot and is due; until ``end_s`` at most if the clock is set back meanwhile."""
        clock = self._clock
        with suppress(TimeoutError):
            async with asyncio.timeout(LONG_S):
                await self._slots.enter(key, claim.tenant_id)
        self._slots.take(key)
        while min(early_s := (claim.due_us - clock.now_us()) / 1_000_000, left_s := end_s - clock.elapsed_s()) > 0:
            await clock.sleep(min(early_s, left_s))

    async def _attempt(self, key: Key, claim: Claim, end_s: float) -> None:
        """Execute a claim when it can start, and publish its end."""
        json_logs.bind(tenant_id=claim.tenant_id, action_id=claim.action_id, attempt=claim.attempt)
        SLOT.set(self._slots.of(key, claim.tenant_id))
        try:
            await self._wait_for_start(key, claim, end_s)
            self._context.bus.publish(AttemptStarted(claim))
            finished = await self._execute(claim)
        except asyncio.CancelledError as killed:
            # The attempt is this node's no more: its row was written by the transaction that took it away.
            self._stopped(claim, killed.finished if isinstance(killed, Stopped) else Finished(Outcome.CANCELLED))
            return
        except Exception as error:  # noqa: BLE001 - an executor must answer; that it did not is our fault, never the tenant's
            gone = error.__cause__ if isinstance(error, CallHandlerGone) else error
            if isinstance(gone, Unavailable):
                self._context.bus.publish(Fault("attempts", gone))
            else:
                _log.error("attempt %d of action %s: %s: %s", claim.attempt, claim.action_id, type(error).__name__, error,
                           exc_info=error)  # fmt: skip
            # A fixed sentence: the error may name hosts and files of the operator's.
            found = verdict.of_host(CallHandlerGone() if isinstance(gone, Unavailable) else error)
            finished = Finished(found.outcome, error=found.error)
        self._ended.add(key)
        self.ends_meanwhile += self.claiming
        self._slots.end(key)
        self._context.bus.publish(AttemptFinished(claim, finished))

    def _over(self, claim: Claim, task: asyncio.Task[None]) -> None:
        """Handle the end of an attempt's task; a task that was cancelled before it ran is reported as stopped here."""
        if task.cancelled():  # before it began: otherwise the attempt answers its kill
            self._stopped(claim, Finished(Outcome.CANCELLED))

    def _stopped(self, claim: Claim, finished: Finished) -> None:
        """Publish that an attempt was killed, and free its slot."""
        self._context.bus.publish(AttemptStopped(claim, finished))
        self._release(claim)

    def _committed(self, event: BatchCommitted) -> None:
        """Free the slots of attempts whose ends were committed."""
        for claim, _finished in event.batch:
            self._release(claim)

    def _release(self, claim: Claim) -> None:
        """Forget an attempt that was written, or killed."""
        key = key_of(claim)
        self._claims.pop(key, None)
        self._tasks.pop(key, None)
        self._begun_s.pop(key, None)
        self._ended.discard(key)
        self._slots.end(key)
        if not self._claims:
            self._empty.set()
        self._context.bus.publish(AttemptReleased(claim))

    def kill(self, keys: set[Key] | None = None) -> None:
        """Kill the workers of these attempts, or of all."""
        for key in list(self._tasks) if keys is None else keys:
            task = self._tasks.get(key)
            # Once: cancelled twice it could not report its usage.
            if task is not None and not task.cancelling():
                task.cancel()

    async def drained(self) -> None:
        """Wait until this node has no attempt."""
        await self._empty.wait()

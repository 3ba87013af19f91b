"""Takes actions for the free slots, runs their attempts, and kills those that are another node's by now."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import ClassVar, TypeVar

from sqlalchemy import Connection

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import (
    ActionsReady,
    AttemptFinished,
    AttemptReleased,
    AttemptsStarted,
    AttemptStopped,
    Backlog,
    ChangeReported,
    LeaseLost,
    LeaseRenewed,
    LedgerChanged,
)
from lodger.engine.core.execution import Claim, Executor, Finished, Stopped
from lodger.engine.core.telemetry import json_logs
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import BatchCommitted, Claimed
from lodger.engine.node.service import Service
from lodger.engine.policy.placement import Room, SlotReduction, long_slots
from lodger.engine.store.lifecycle import claims, leases
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.queue import ready_queue
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

T = TypeVar("T")
_log = logging.getLogger("lodger.node")

#: While more slots are due than one tick takes, naming them goes first: a claim comes no sooner than so long after the last one,
#: and starts so many at most; but after so long it claims as ever, whatever is due. Seconds, attempts, seconds.
GIVES_WAY_S, MAX_GIVES_WAY, PATIENCE_S = 0.05, 16, 2.0
#: An attempt: id of its action, and its number.
Key = tuple[str, int]


def key_of(claim: Claim) -> Key:
    """Return what names an attempt in this process."""
    return claim.action_id, claim.attempt


class RunningAttempts:
    """The attempts of this node: they wait until they are due or run, and hold a place each; or have ended and wait to be written.

    Attributes:
        claiming: a claim is being written.
        in_doubt: a claim may have been written without its answer having come.
        full: no slot was free at the dispatcher's last look.
    """

    def __init__(self) -> None:
        self._claims: dict[Key, Claim] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._ended: set[Key] = set()
        self.claiming = self.in_doubt = self.full = False
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._claims)

    @property
    def keys(self) -> set[Key]:
        """All of them."""
        return set(self._claims)

    @property
    def ended(self) -> set[Key]:
        """Those that have ended and wait to be written."""
        return set(self._ended)

    @property
    def claims(self) -> list[Claim]:
        """What was claimed for each."""
        return list(self._claims.values())

    @property
    def running(self) -> list[Claim]:
        """What was claimed for each that holds a slot."""
        return [claim for key, claim in self._claims.items() if key not in self._ended]

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The task of each."""
        return list(self._tasks.values())

    def add(self, claim: Claim, task: asyncio.Task[None]) -> None:
        """Let an attempt hold a slot."""
        self._empty.clear()
        self._claims[key_of(claim)], self._tasks[key_of(claim)] = claim, task

    def end(self, claim: Claim) -> None:
        """Free the slot of an attempt that has ended and waits to be written."""
        self._ended.add(key_of(claim))

    def remove(self, claim: Claim) -> None:
        """Forget an attempt that was written, or killed."""
        key = key_of(claim)
        self._claims.pop(key, None)
        self._tasks.pop(key, None)
        self._ended.discard(key)
        if not self._claims:
            self._empty.set()

    def kill(self, keys: set[Key] | None = None) -> None:
        """Kill the workers of these attempts, or of all."""
        for key in list(self._tasks) if keys is None else keys:
            task = self._tasks.get(key)
            # Once: cancelled twice it could not report what it has used.
            if task is not None and not task.cancelling():
                task.cancel()

    async def drained(self) -> None:
        """Wait until there is none."""
        await self._empty.wait()


class Dispatcher(Service):
    """Claims no more than may start at once.

    Attributes:
        attempts: what runs here or waits to be written; shared with the services that compare and count it.
    """

    name: ClassVar[str] = "dispatcher"

    def __init__(self, context: NodeContext, executor: Executor, attempts: RunningAttempts) -> None:
        super().__init__(context)
        self.attempts = attempts
        self._executor = executor
        self._vain = 0
        #: When the next action may start, as the last look, claim or commit of this node saw it, and whether to look again.
        self._startable_us: int | None = None
        self._stale = True
        self._slot_reduction = SlotReduction()
        self._behind_s: float | None = None
        self._draining = False
        self._claimed_s = float("-inf")
        bus = context.bus
        bus.subscribe(LedgerChanged, self._changed)
        bus.subscribe(ChangeReported, self._changed)
        bus.subscribe(ActionsReady, self._ready)
        bus.subscribe(Backlog, self._backlog)
        bus.subscribe(BatchCommitted, self._committed)
        bus.subscribe(LeaseRenewed, self._renewed)
        bus.subscribe(LeaseLost, self._lost)

    async def stop(self) -> None:
        """End the loop, and claim nothing in the transactions of others any more."""
        self._draining = True
        await super().stop()
        # What is being claimed runs before the attempts are counted that are to end.
        async with self.context.claim_lock:
            pass

    async def round(self) -> float:
        """Claim for the free slots; wait for the next instant at which something may start."""
        context, lease = self.context, self.context.identity.lease
        self.attempts.full = self.free <= 0
        if lease is None:
            return context.settings.poll_s
        if self.attempts.full:
            return context.idle_s
        behind = self._gives_way()
        if behind and (wait := self._claimed_s + GIVES_WAY_S - self.clock.elapsed_s()) > 0:
            return wait
        if self._stale:
            await self._look(lease)
        if context.claim_lock.locked() and not behind:
            return context.idle_s  # what is being written brings a claim, or wakes
        async with context.claim_lock:
            return await self._round(lease, behind=behind)

    async def _round(self, lease: Lease, *, behind: bool) -> float:
        context, upcoming, now = self.context, self._startable_us, self.clock.now_us()
        if upcoming is None or self.free <= 0:
            return context.idle_s
        begin = context.lead_us(upcoming)
        if begin > now:
            return min(context.idle_s, (begin - now) / 1_000_000)
        room = self.room()
        with self._claiming():
            claimed = await self.claim(lease, replace(room, slots=min(room.slots, MAX_GIVES_WAY)) if behind else room)
        if not self._begin(lease, claimed):
            return 0.0
        # Something is due that this node may not start: another node has it, or a budget or the node's memory.
        self._vain = 0 if claimed else min(self._vain + 1, 10)
        return min(context.settings.poll_s, 0.005 * 2**self._vain) if self._vain else 0.0

    async def _look(self, lease: Lease) -> None:
        """Read when the next action may start: it stands until a commit of another process, however far away it is."""
        self._stale, self._startable_us = False, None
        ask = partial(ready_queue.next_startable, until_us=ready_queue.FOREVER_US, labels=lease.labels)
        try:
            found = await self.context.db.cached_read(("startable", lease.labels), ask)
        except BaseException:
            self._stale = True
            raise
        # A transaction of this node that ended meanwhile may have seen more, or less.
        known = [each for each in (found, self._startable_us) if each is not None]
        self._startable_us = min(known, default=None)

    async def claim(self, lease: Lease, room: Room) -> list[Claim]:
        """Claim for what is free, and publish what was claimed; none while this machine's clock is wrong."""
        if self.clock.skewed:
            return []
        claiming = _Claiming(self.context, lease, room)
        await self.context.db.write(claiming.take)
        return self._claimed(claiming)

    def _claimed(self, claiming: "_Claiming") -> list[Claim]:
        self._startable_us = claiming.startable_us
        self.context.bus.publish(Claimed(tuple(claiming.claims), claiming.spent))
        return claiming.claims

    def gathers_s(self) -> float:
        """Return how long an ended attempt may wait to share a transaction, seconds; 0 or less: write now.

        It does not wait if no other attempt runs, or while an action waits for a place.
        """
        startable_us = self._startable_us
        if not self.attempts.running or (startable_us is not None and startable_us <= self.clock.now_us()):
            return 0.0
        return self._claimed_s + self.context.settings.ahead_s / 2 - self.clock.elapsed_s()

    async def write_and_claim(
        self,
        work: Callable[[Connection], tuple[T, bool | None]],
        then: Callable[[T], None],
        is_plain: Callable[[T], bool],
    ) -> None:
        """Do some work as :class:`lodger.engine.node.context.Write` says, and claim in the same transaction if actions are ready.

        Rows that others have locked are left to a later claim, because others may wait for what the work has locked. If the
        claim fails, the work is done again without it.
        """
        context, lease = self.context, self.context.identity.lease
        claiming = None
        if lease is not None and not self._draining and self.free > 0 and not (self._gives_way() or self.clock.skewed):
            claiming = _Claiming(context, lease, self.room(), wait=False)
        try:
            with self._claiming() if claiming is not None else nullcontext():
                await self._write(work, then, is_plain, claiming)
        except Exception as error:
            if claiming is None or not claiming.failed or isinstance(error, Unavailable):
                raise
            await self._write(work, then, is_plain)
        finally:
            self._look_on()  # it was passed by what came meanwhile

    async def _write(
        self,
        work: Callable[[Connection], tuple[T, bool | None]],
        then: Callable[[T], None],
        is_plain: Callable[[T], bool],
        claiming: "_Claiming | None" = None,
    ) -> None:
        context, lease = self.context, self.context.identity.lease

        def both(connection: Connection) -> tuple[T, bool | None, int | None, bool]:
            done, ready = work(connection)
            startable_us = 0 if ready else None
            if ready is None and lease is not None:
                startable_us = ready_queue.next_startable(connection, ready_queue.FOREVER_US, lease.labels)
            if claiming is None or startable_us is None or startable_us > context.ahead_us(self.clock.now_us()):
                return done, ready, startable_us, False
            claiming.take(connection)
            return done, None, claiming.startable_us, True

        done, ready, startable_us, claimed = await context.db.write(
            both, is_plain=lambda written: written[2] is None and is_plain(written[0])
        )
        if ready is not False:
            self._startable_us = startable_us
        then(done)
        if claiming is not None and claimed:
            self._begin(claiming.lease, self._claimed(claiming))
        elif ready:
            context.bus.publish(ActionsReady())

    @contextmanager
    def _claiming(self) -> Iterator[None]:
        """Note that a claim is being written."""
        self.attempts.claiming, self._claimed_s = True, self.clock.elapsed_s()
        try:
            yield
        except Exception:
            self.attempts.in_doubt = True
            raise
        finally:
            self.attempts.claiming = False

    @property
    def slots(self) -> int:
        """How many attempts may run here at once: fewer than it has slots while it hardly keeps its lease."""
        return self._slot_reduction.of(self.context.settings.slots)

    @property
    def free(self) -> int:
        """How many more may start: each that runs holds a slot, and no more than there are slots wait to be written."""
        return min(self.slots - len(self.attempts.running), 2 * self.slots - len(self.attempts))

    def room(self) -> Room:
        """Return what of this node is free."""
        room = Room(self.slots, long_slots(self.slots), self.context.settings.memory_reserved_bytes)
        for claim in self.attempts.running:
            room = room.without(1, claim.limits)
        return replace(room, slots=self.free)

    def _begin(self, lease: Lease, claimed: list[Claim]) -> bool:
        """Start what was claimed under a lease; return whether the node still holds it."""
        held = self.context.identity.lease
        if held is None or held.epoch != lease.epoch:
            # Lost while they were claimed: they are another's, or this node's again when it is registered anew.
            return False
        now_us = self.clock.now_us()
        for claim in claimed:
            attempt = self._attempt(claim) if claim.due_us <= now_us else self._attempt_when_due(claim)
            task = asyncio.create_task(attempt, name=f"lodger-attempt-{claim.action_id}")
            task.add_done_callback(partial(self._over, claim))
            self.attempts.add(claim, task)
        if due := tuple([claim for claim in claimed if claim.due_us <= now_us]):
            self.context.bus.publish(AttemptsStarted(due))
        return True

    def _over(self, claim: Claim, task: asyncio.Task[None]) -> None:
        if task.cancelled():  # before it began: a kill is answered by what runs
            self._stopped(claim, Finished(Outcome.CANCELLED))

    async def _attempt(self, claim: Claim) -> None:
        json_logs.bind(tenant_id=claim.tenant_id, action_id=claim.action_id, attempt=claim.attempt)
        try:
            finished = await self._executor.execute(claim)
        except asyncio.CancelledError as killed:
            # The attempt is this node's no more: its row was written by what took it away, without what only we know.
            self._stopped(claim, killed.finished if isinstance(killed, Stopped) else Finished(Outcome.CANCELLED))
            return
        except Exception as error:  # noqa: BLE001 - an executor must answer; that it did not is our fault, never the tenant's
            _log.error("attempt %d of action %s: %s: %s", claim.attempt, claim.action_id, type(error).__name__, error,
                       exc_info=error)  # fmt: skip
            finished = Finished(Outcome.ENGINE_FAULT, error=ScriptError(type(error).__name__, str(error)))
        self.attempts.end(claim)
        self.context.bus.publish(AttemptFinished(claim, finished))

    async def _attempt_when_due(self, claim: Claim) -> None:
        """Wait for what was claimed ahead, but no longer if the clock is set back meanwhile."""
        end_s = self.clock.elapsed_s() + self.context.settings.ahead_s
        try:
            while (
                min(
                    early_s := (claim.due_us - self.clock.now_us()) / 1_000_000,
                    left_s := end_s - self.clock.elapsed_s(),
                )
                > 0
            ):
                await self.clock.sleep(min(early_s, left_s))
        except asyncio.CancelledError:
            self._stopped(claim, Finished(Outcome.CANCELLED))
            return
        self.context.bus.publish(AttemptsStarted((claim,)))
        await self._attempt(claim)

    def _stopped(self, claim: Claim, finished: Finished) -> None:
        self.context.bus.publish(AttemptStopped(claim, finished))
        self._release(claim)

    def _release(self, claim: Claim) -> None:
        self.attempts.remove(claim)
        self.context.bus.publish(AttemptReleased(claim))
        self._look_on()

    def _look_on(self) -> None:
        """Look at once if there is anything to look for."""
        if self._stale or self._startable_us is not None:
            self.wake()

    def _gives_way(self) -> bool:
        """Whether the ticker is in the midst of more slots than it could name at once."""
        return self._behind_s is not None and self.clock.elapsed_s() - self._behind_s < PATIENCE_S

    # ---- what the other services tell

    def _changed(self, _event: LedgerChanged | ChangeReported) -> None:
        """Look again."""
        self._stale = True
        self.wake()

    def _ready(self, _event: ActionsReady) -> None:
        """Claim without looking first."""
        self._startable_us = 0
        self.wake()

    def _backlog(self, event: Backlog) -> None:
        self._behind_s = event.since_s

    def _committed(self, event: BatchCommitted) -> None:
        for claim, _finished in event.batch:
            self._release(claim)
        self._look_on()

    def _renewed(self, event: LeaseRenewed) -> None:
        """Let a renewal that came late reduce the claim size, and one in time restore it."""
        settings = self.context.settings
        before, kept_s = self._slot_reduction, settings.lease_s - settings.surrendering_s
        self._slot_reduction = before.renewed(event.after_s, kept_s, settings.slots)
        if self._slot_reduction.halvings < before.halvings:
            self.wake()

    def _lost(self, _event: LeaseLost) -> None:
        """Kill everything, and reduce the claim size under the next lease."""
        self.attempts.kill()
        self._stale = True
        self._slot_reduction = self._slot_reduction.troubled(self.context.settings.slots)


class _Claiming:
    """A claim and what it found, for a transaction that may be another's."""

    def __init__(self, context: NodeContext, lease: Lease, room: Room, *, wait: bool = True) -> None:
        self._context, self.lease, self._room, self._wait = context, lease, room, wait
        self.spent: dict[str, str] = {}
        self.claims: list[Claim] = []
        self.startable_us: int | None = None
        self.failed = False

    def take(self, connection: Connection) -> None:
        """Claim; read when the next action may start."""
        store, lease, room, now_us = self._context.store, self.lease, self._room, self._context.clock.now_us()
        self.failed = True
        self.claims = claims.claim(
            store, connection, lease, room.slots, now_us, room, self.spent, wait=self._wait,
            ahead_us=self._context.ahead_us(now_us),
        )  # fmt: skip
        self.startable_us = ready_queue.next_startable(connection, ready_queue.FOREVER_US, lease.labels)
        self.failed = False


class Reconciler(Service):
    """Compares what runs here with what the ledger says runs here.

    Within ``poll_s`` it sees that an attempt was cancelled, suspended or taken over, and kills its worker. What the ledger says runs
    here and does not, because the answer to its claim was lost on the way, it hands back.
    """

    name: ClassVar[str] = "reconciler"

    def __init__(self, context: NodeContext, attempts: RunningAttempts) -> None:
        super().__init__(context)
        self._attempts = attempts
        self.wake_on(LedgerChanged, ChangeReported)

    async def round(self) -> float:
        """Compare once."""
        context, attempts = self.context, self._attempts
        # Taken before the snapshot: an attempt claimed meanwhile is in neither.
        here, claiming = attempts.keys, attempts.claiming
        lease = context.identity.lease
        if lease is None or not (here or attempts.in_doubt):
            return context.settings.poll_s if claiming else context.idle_s
        mine = await context.db.read(partial(leases.running_attempts, lease=lease))
        attempts.kill(here - mine - attempts.ended)
        absent = mine - attempts.keys
        # What a claim has just written is absent until it is answered: then it is looked at again.
        attempts.in_doubt = bool(absent) and (claiming or attempts.claiming)
        if absent and not attempts.in_doubt:
            await context.db.write(partial(leases.return_unstarted, lease=lease, attempts=absent))
            context.bus.publish(ActionsReady())
        return context.settings.poll_s

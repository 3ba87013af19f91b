"""One engine process at work: the services, what they share, and what they tell."""

import asyncio
import logging
import os
import socket
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from lodger.engine.core.access.labels import parse_labels
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim, Executor, Finished
from lodger.engine.effects.outcome_commit import ApplyEffects, Committed
from lodger.engine.effects.sealed_commits import Finish
from lodger.engine.node.db_executor import Pen
from lodger.engine.node.executors.host_executor import HostExecutor
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.executors.kinds import Kinds
from lodger.engine.node.executors.ping_executor import PingExecutor
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor, effects_applier
from lodger.engine.node.node_name import named
from lodger.engine.node.outbox.senders import Couriers
from lodger.engine.node.running.cancelled_usage import Remains
from lodger.engine.node.running.committer import Committer
from lodger.engine.node.running.dispatcher import Dispatcher
from lodger.engine.node.running.finisher import Finisher
from lodger.engine.node.running.log_streamer import Scribe
from lodger.engine.node.running.rescuer import Heartbeat, Rescuer, Warden, Watch
from lodger.engine.node.scheduling.adopter import Adopter
from lodger.engine.node.scheduling.commit_watch import FAR_S, Lookout
from lodger.engine.node.scheduling.feeder import Feeder
from lodger.engine.node.scheduling.listener import OFF, Listener
from lodger.engine.node.scheduling.prefetcher import Forerunner
from lodger.engine.node.scheduling.ticker import Ticker
from lodger.engine.node.server_clock import ServerClock
from lodger.engine.node.service import Service, either
from lodger.engine.node.upkeep.archivist import Archivist
from lodger.engine.node.upkeep.monitor import Monitor
from lodger.engine.policy.placement import Room
from lodger.engine.store.context import database_us
from lodger.engine.store.lifecycle import claims, leases, retiming
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.lifecycle.leases import Rescued
from lodger.engine.store.lifecycle.tick import Ticked
from lodger.engine.store.queue import placements
from lodger.engine.store.usage.usage import DAY_US, Warned

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

_log = logging.getLogger("lodger.node")


class Node:
    """Ticker, dispatcher, committer, heartbeat, warden, rescuer and watch around one executor.

    ``start`` and ``stop`` are safe to call twice. Everything it knows that matters stands in the ledger: a killed node
    loses nothing but time.

    Args:
        executor: what runs the attempts; None for locked workers that see what the engine exposes.
        name: for people; None for host name and process id.
        apply_effects: applies an attempt's journal in the commit's transaction; None for Lodger's own.
        couriers: whether this node sends mails and webhooks.
    """

    def __init__(
        self,
        engine: "Engine",
        executor: Executor | None = None,
        name: str | None = None,
        *,
        apply_effects: ApplyEffects | None = None,
        couriers: bool = True,
    ) -> None:
        self.engine = engine
        self.books = engine.books
        self.clock = ServerClock(engine.books.clock)
        self.settings = engine.books.settings
        scripts = executor or SandboxExecutor.of(engine)
        side = scripts.side if isinstance(scripts, SandboxExecutor) else None
        self._side = side
        self.executor: Executor = Kinds({
            "script": scripts,
            "ping": PingExecutor(side or HostSide.of(engine), owned=side is None),
            "host": HostExecutor(engine.handlers, self.clock, lambda: self.name),
        })  # fmt: skip
        self.apply_effects = apply_effects or effects_applier(self.clock)
        self.id = self.books.ids.new()
        self.name = named(name or f"{socket.gethostname()}-{os.getpid()}")
        self.lease: Lease | None = None
        self.renewed_s = 0.0
        self._spent: set[tuple[str, str, int]] = set()
        self._started = False
        self._couriers = Couriers(self) if couriers else None

    async def start(self) -> None:
        """Register, then begin to tick and to claim."""
        if self._started:
            return
        await self.prepare()
        for service in self._services:
            await service.start()
        if self._couriers is not None:
            await self._couriers.start()

    async def prepare(self) -> None:
        """Make everything ready and register; nothing is looked for yet."""
        self._started = True
        self.pen = Pen(self.books.database, self.settings.database_patience_s)
        self.ticker, self.dispatcher, self.committer = Ticker(self), Dispatcher(self), Committer(self)
        self.finisher, self.remains, self.monitor = Finisher(self), Remains(self), Monitor(self)
        self.feeder, self.watch, self.adopter = Feeder(self), Watch(self), Adopter(self)
        self._services: list[Service] = [
            self.committer, Heartbeat(self), Warden(self), Rescuer(self), self.watch, Archivist(self), self.finisher, self.remains,
            self.monitor, self.feeder, self.adopter, Forerunner(self), self.dispatcher, self.ticker, Lookout(self),
        ]  # fmt: skip
        if self.books.database.driver.has_notifications and self.settings.listen_url != OFF:
            self._services.append(Listener(self))
        self.scribe = Scribe(self)
        if self._side is not None:  # who else executes says nothing before the end
            self._services.append(self.scribe)
            self._side.hear(self.scribe.hear)
        self._loop = asyncio.get_running_loop()
        self._forget = self.engine.watch(self._changed)
        await self.executor.start()
        await self.register()
        await self._retime()

    async def stop(self) -> None:
        """Claim nothing more, let attempts end for ``drain_s`` of the settings, hand the rest back, flush, resign the lease."""
        if not self._started:
            return
        self._started = False
        self._forget()
        await self.ticker.stop()
        await self.dispatcher.stop()
        await either(self.dispatcher.drained(), self.clock.sleep(self.settings.drain_s))
        for service in self._services:
            await service.stop()
        attempts = list(self.dispatcher.running.values())
        self.dispatcher.kill()
        await asyncio.gather(*attempts, return_exceptions=True)
        try:
            await self.committer.flush()
            await self.remains.flush()
            if self.lease is not None:
                await self.pen.write(partial(leases.resign, lease=self.lease, now_us=self.clock.now_us()))
        except Exception as error:  # noqa: BLE001 - the database may be gone; the rescuer of another node does it then
            self.failed("node", error)
        self.lease = None
        if self._couriers is not None:
            await self._couriers.stop()
        await self.finisher.finish()
        await self.executor.stop()
        self.pen.close()

    async def register(self) -> None:
        """Take a lease under a new epoch."""
        begun = self.clock.elapsed_s()
        now = self.clock.now_us()
        self.lease = await self.pen.write(
            partial(
                leases.register, self.books, node_id=self.id, name=self.name, now_us=now, labels=self.labels(),
                slots=self.settings.slots,
            )
        )  # fmt: skip
        self.renewed_s = begun
        self.pen.line.patience_s = self.settings.database_patience_s
        await self.compare_clocks()

    def labels(self) -> frozenset[str]:
        """Give what this node carries beside its name: labels of the settings, and the handlers of this process."""
        return frozenset(parse_labels(self.settings.labels)) | self.engine.handlers.labels

    async def _retime(self) -> None:
        """Bring the clocks to this process's zone data, and tell what that moved."""
        looked = 1
        while looked:
            looked, moved = await self.pen.write(partial(retiming.retime, self.books))
            for each in moved:
                _log.warning("zone data moved %s from %s to %s", each.schedule_id, each.from_us, each.to_us)
                self.engine.events.tell(
                    Event("retimed", self.clock.now_us(), each.tenant_id, each.schedule_id, None,
                          {"from_us": each.from_us, "next_us": each.to_us})
                )  # fmt: skip

    async def compare_clocks(self) -> None:
        """Measure how far this machine's clock is from the database server's, and tell when it is too far."""
        if self.books.database_time:
            asked = self.clock.own_us()
            self.compared(await self.pen.read(database_us), asked, self.clock.own_us())

    def compared(self, server_us: int, asked_us: int, answered_us: int) -> None:
        """Take the server's time, read between two moments of this machine's clock."""
        before = self.clock.skewed
        self.clock.measured(server_us, asked_us, answered_us)
        if self.clock.skewed != before:
            self.tell("clock_skew", offset_us=self.clock.offset_us, claims=not self.clock.skewed)

    def lose_lease(self, why: str) -> None:
        """Stop being a node until registered anew: its workers die, what they did is dropped."""
        self.lease = None
        # What was asked under it is worth nothing any more: whoever still waits for an answer hangs up and begins anew.
        self.pen.line.patience_s = min(self.settings.lease_s, self.settings.database_patience_s)
        self.dispatcher.kill()
        self.dispatcher.held_back()
        self.engine.meters.count("lodger_leases_lost_total")
        self.tell("lease_lost", reason=why)

    async def claim(self, lease: Lease, room: Room) -> list[Claim]:
        """Claim for what is free and tell what starts."""
        if self.clock.skewed:
            return []
        now = self.clock.now_us()
        spent: dict[str, str] = {}
        claimed = await self.pen.write(
            partial(claims.claim, self.books, lease=lease, free=room.slots, now_us=now, room=room, spent=spent)
        )
        for tenant_id, reason in spent.items():
            self._told_spent(tenant_id, reason)
        late_s = [max(0, now - claim.due_us) / 1_000_000 for claim in claimed if claim.origin == "slot"]
        self.engine.meters.observe("lodger_lateness_seconds", late_s)
        if self.engine.events.heard:
            for claim in claimed:
                self._told_start(claim)
        return claimed

    def failed(self, service: str, error: Exception) -> None:
        """Tell that a round of a service failed; it is tried again."""
        # What the host lacks explains itself; only a fault of ours needs its traceback.
        trace = None if isinstance(error, Unavailable) else error
        _log.error("%s: %s: %s", service, type(error).__name__, error, exc_info=trace)
        self.engine.meters.count("lodger_faults_total", service)
        self.tell("fault", service=service, error=error)

    def tell(self, kind: str, action: tuple[str, str | None, str | None] | None = None, **details: object) -> None:
        """Tell an event; ``action`` is (tenant, schedule, action)."""
        tenant, schedule, action_id = action or (None, None, None)
        self.engine.events.tell(Event(kind, self.clock.now_us(), tenant, schedule, action_id, details))

    def _told_start(self, claim: Claim) -> None:
        self.tell(
            "started",
            (claim.tenant_id, claim.schedule_id, claim.action_id),
            script=claim.script_name,
            attempt=claim.attempt,
            slot_us=claim.slot_us,
            due_us=claim.due_us,
            lateness_ms=(claim.started_us - claim.due_us) / 1000,
            origin=claim.origin,
            node=self.name,
        )

    def _told_spent(self, tenant_id: str, reason: str) -> None:
        """Tell that a tenant has used up a budget of the day; once a day is enough."""
        day = self.clock.now_us() // DAY_US
        self._spent = {key for key in self._spent if key[2] == day}
        if (tenant_id, reason, day) not in self._spent:
            self._spent.add((tenant_id, reason, day))
            self.tell("spent", (tenant_id, None, None), reason=reason)

    def told_ticks(self, ticked: list[Ticked]) -> None:
        """Tell what a tick wrote, and let the dispatcher look."""
        if any(each.runs for each in ticked):
            self.dispatcher.nudge()
        self.engine.meters.count("lodger_slots_total", "run", by=sum(len(each.runs) for each in ticked))
        self.engine.meters.count("lodger_slots_total", "skipped", by=sum(len(each.skipped) for each in ticked))
        if not self.engine.events.heard:
            return
        for each in ticked:
            for action_id, slot in each.runs:
                self.tell(
                    "ticked",
                    (each.tenant_id, each.schedule_id, action_id),
                    slot_us=slot,
                    next_us=each.next_us,
                )
            for slot, slot_to, reason in each.skipped:
                if reason is not None and reason.startswith("budget_"):
                    self._told_spent(each.tenant_id, reason)
                self.engine.events.tell(
                    Event("skipped", self.clock.now_us(), each.tenant_id, each.schedule_id, None,
                          {"slot_us": slot, "slot_to_us": slot_to, "reason": reason, "next_us": each.next_us})
                )  # fmt: skip

    def told_commit(self, batch: list[tuple[Claim, Finished]], committed: Committed) -> None:
        """Free the slots of a batch and tell how its attempts ended."""
        for claim, finished in batch:
            self.dispatcher.forget(claim)
            self.monitor.ended(claim, finished)
            if self._couriers is not None:
                self._couriers.poke(finished)
        self._counted(batch, committed)
        self.finisher.put(committed.sealed)
        self.told_warned(committed.warned)
        if not self.engine.events.heard:
            return
        for claim, finished in batch:
            for name, limit, used in finished.nearly:
                self.tell("budget", (claim.tenant_id, claim.schedule_id, claim.action_id), attempt=claim.attempt,
                          budget=name, per="attempt", limit=limit, used=used)  # fmt: skip
        became = {(each.action_id, each.attempt): each for each in committed.settled}
        sealed = {(each.action_id, each.attempt) for each in committed.sealed}
        for claim, finished in batch:
            whose = (claim.tenant_id, claim.schedule_id, claim.action_id)
            if (claim.action_id, claim.attempt) in sealed:
                self.tell("sealed", whose, script=claim.script_name, attempt=claim.attempt, step=claim.step)
                continue
            settled = became.get((claim.action_id, claim.attempt))
            if settled is None:
                self.tell("lost", whose, attempt=claim.attempt, finished=finished)
                continue
            self.tell("finished", whose, script=claim.script_name, state=settled.state, outcome=settled.outcome,
                      attempt=claim.attempt, step=claim.step, slot_us=claim.slot_us, retry_at_us=settled.retry_at_us,
                      finished=finished,
                      next_us=claim.upcoming_us[0] if claim.upcoming_us else None)  # fmt: skip
            if settled.paused:
                self.tell("paused", whose, reason="failures")

    def told_warned(self, warned: Iterable[Warned]) -> None:
        """Tell who has used four fifths of a budget of the day; each is told once."""
        for each in warned:
            _log.warning(
                "tenant %s has used %d of %d of today's budget %s", each.tenant_id, each.used, each.limit, each.budget
            )
            self.engine.events.tell(
                Event("budget", self.clock.now_us(), each.tenant_id, None, None,
                      {"budget": each.budget, "per": "day", "limit": each.limit, "used": each.used})
            )  # fmt: skip

    def told_finish(self, done: Finish) -> None:
        """Tell how an attempt that was sealed ended, and let the dispatcher look."""
        each = done.settled
        self.dispatcher.nudge()
        self.told_warned(done.warned)
        whose = (each.tenant_id, each.schedule_id, each.action_id)
        self.tell("finished", whose, script=done.script, state=each.state, outcome=each.outcome, attempt=each.attempt,
                  step=each.step, slot_us=done.slot_us, retry_at_us=each.retry_at_us, finished=done.finished,
                  next_us=done.next_us)  # fmt: skip
        if each.paused:
            self.tell("paused", whose, reason="failures")

    def _counted(self, batch: list[tuple[Claim, Finished]], committed: Committed) -> None:
        meters = self.engine.meters
        meters.observe("lodger_attempt_seconds", [finished.usage.wall_ms / 1000 for _claim, finished in batch])
        for outcome, number in Counter(each.outcome for each in committed.settled).items():
            meters.count("lodger_attempts_total", outcome.value, by=number)
        if committed.lost:
            meters.count("lodger_lost_commits_total", by=len(committed.lost))

    def told_rescue(self, rescued: Rescued) -> None:
        """Tell what was taken from lost nodes, and let the dispatcher look."""
        self.dispatcher.nudge()
        self.engine.meters.count("lodger_rescued_total", by=len(rescued.actions))
        for name in rescued.nodes:
            self.tell("node_lost", node=name)
        for each in rescued.actions:
            self.tell("rescued", (each.tenant_id, each.schedule_id, each.action_id), state=each.state)

    def told_gone(self, rows: Sequence[Any]) -> None:
        """Tell what waited for a node that is gone."""
        for row in rows:
            self.tell("skipped", (row.tenant_id, row.schedule_id, row.id), reason=placements.GONE, node=row.node_key)

    def told_expiry(self, rows: Sequence[Any]) -> None:
        """Tell what has waited too long."""
        self.engine.meters.count("lodger_expired_total", by=len(rows))
        for row in rows:
            self.tell("expired", (row.tenant_id, row.schedule_id, row.id))

    def _changed(self) -> None:
        """Look now; called from any thread."""
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(self.look)

    @property
    def patience_s(self) -> float:
        """How long who waits for a commit may sleep: until it is woken where commits are seen, else until its next look."""
        return FAR_S if self.pen.sees else self.settings.poll_s

    def look_again(self) -> None:
        """Look whether what somebody has committed is for this node; called in the node's loop."""
        for service in (self.ticker, self.dispatcher, self.finisher, self.feeder, self.watch, self.adopter):
            service.nudge()

    def look(self) -> None:
        """Look now; called in the node's loop."""
        self.pen.doubt()
        for service in self._services:
            if not isinstance(service, Archivist):
                service.nudge()

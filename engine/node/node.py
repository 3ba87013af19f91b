"""One engine process at work: makes the services, wires them to one bus, starts and stops them."""

import asyncio
import gc
import logging
import os
import socket
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

from lodger.engine.core.events import ChangeReported, EventBus, Fault, LedgerWritten
from lodger.engine.effects.finished import Executor
from lodger.engine.node.context import NodeContext, NodeIdentity, ServerClock
from lodger.engine.node.db_executor import DbExecutor
from lodger.engine.node.executors.by_kind import KINDS, ByKind
from lodger.engine.node.executors.host_executor import HostExecutor
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.node.ledger_loop.loop import LedgerLoop
from lodger.engine.node.node_environment import NodeEnvironment
from lodger.engine.node.outbox.senders import Senders
from lodger.engine.node.reporting import Reporter
from lodger.engine.node.running_attempts import RunningAttempts
from lodger.engine.node.service import Service, either
from lodger.engine.node.services.cancelled_usage import CancelledUsage
from lodger.engine.node.services.change_feed import ChangeFeed
from lodger.engine.node.services.clock_watch import ClockWatch
from lodger.engine.node.services.commit_watch import CommitWatch
from lodger.engine.node.services.heartbeat import Heartbeat
from lodger.engine.node.services.lease_keeper import LeaseKeeper
from lodger.engine.node.services.lease_watchdog import LeaseWatchdog
from lodger.engine.node.services.ledger_check import LedgerCheck
from lodger.engine.node.services.listener import OFF, Listener
from lodger.engine.node.services.log_streamer import LogStreamer
from lodger.engine.node.services.monitor import Monitor
from lodger.engine.node.services.prefetcher import Prefetcher
from lodger.engine.node.services.reconciler import Reconciler
from lodger.engine.node.services.recovery import Recovery
from lodger.engine.node.services.retention import Retention
from lodger.engine.node.services.sealed_commits import SealedCommits
from lodger.engine.node.tracing import open_tracer
from lodger.engine.node.wings import SERVICES
from lodger.engine.store.lifecycle import leases, retiming
from lodger.engine.store.lifecycle.claims import Lease
from lodger.sandbox.job import Runs

_log = logging.getLogger("lodger.node")
#: A node that has not kept up with due slots for so long is not ready, seconds.
BEHIND_S = 30.0
#: When Python's collector looks for garbage: often, and at few objects. A run leaves next to none; a look at all objects of a thousand
#: running attempts took 100 to 400 ms.
GC_THRESHOLDS = (700, 10, 100)


@cache
def _freeze_loaded() -> None:
    """Freeze the loaded objects, once in a process: they live as long as it, and looking through them held up every run for 60 ms and more.

    Counting frozen objects takes tens of milliseconds, which further nodes of the process need not spend.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)


class Node:
    """The services of one process around one executor.

    ``start`` and ``stop`` are safe to call twice. Everything it knows that matters stands in the ledger: a killed node
    loses nothing but time.

    Args:
        executor: runs the attempts; None for locked workers that see the tables that the host exposes.
        name: for people; None for host name and process id.
        deliver: whether this node sends mails and webhooks.

    Attributes:
        pool: workers for scripts; None if something else runs them.

    Raises:
        InputError: node_name_invalid.
    """

    def __init__(
        self, host: NodeEnvironment, executor: Executor | None = None, name: str | None = None, *, deliver: bool = True
    ) -> None:
        store = host.store
        self.clock = ServerClock(store.clock, int(store.settings.lease_s * 1_000_000))
        self.identity = NodeIdentity(store.ids.new(), name or f"{socket.gethostname()}-{os.getpid()}")
        self.tracer = open_tracer(self.identity.name)
        self.host: NodeEnvironment = host if self.tracer is None else replace(host, tracer=self.tracer)
        host = self.host
        scripts = executor or SandboxExecutor.of(host)
        self._side = scripts.side if isinstance(scripts, SandboxExecutor) else None
        self.pool: Runs | None = scripts.pool if isinstance(scripts, SandboxExecutor) else None
        self._walls = scripts.walls if isinstance(scripts, SandboxExecutor) else dict
        self._executor: Executor = ByKind({
            "script": scripts,
            **{kind: make(self._side or HostSide.of(host), self._side is None) for kind, make in KINDS.items()},
            "host": HostExecutor(host.handlers, self.clock, self.identity.name),
        })  # fmt: skip
        self.delivers: bool = deliver
        self._started = False

    @property
    def id(self) -> str:
        """Id of this process in the ledger."""
        return self.identity.id

    @property
    def name(self) -> str:
        """Name of this node for people, which is also one of its labels."""
        return self.identity.name

    @property
    def lease(self) -> Lease | None:
        """The lease that this node holds, None before it is registered and after the lease was lost."""
        return self.identity.lease

    def problems(self) -> list[str]:
        """Return the reasons why this node cannot do its work; none if it is ready."""
        if not self._started or self.identity.lease is None:
            return ["the node holds no lease"]
        found = ["this machine's clock is wrong"] if self.clock.skewed else []
        if self.clock.hold:
            found.append(self.clock.hold)
        behind_s = self.loop.behind_s
        if behind_s is not None and self.clock.elapsed_s() - behind_s > BEHIND_S:
            found.append("more slots are due than the node can tick")
        return found

    async def start(self) -> None:
        """Register, then begin to tick and to claim."""
        if self._started:
            return
        await self.prepare()
        for service in self.services:
            await service.start()
        if self._senders is not None:
            await self._senders.start()
        _freeze_loaded()

    async def prepare(self) -> None:
        """Make the services and the executor ready, and register; nothing is looked for yet."""
        self._wire()  # refuses wrong settings, when nothing has begun that ``stop`` would end
        self._started = True
        self._event_loop = asyncio.get_running_loop()
        self._forget = self.host.events.subscribe(LedgerWritten, self._written)
        await self._executor.start()
        await self.clock_watch.round()  # before the lease: it says that the ledger was written now
        await self.lease_keeper.register()
        await self.lease_keeper.warn_of_namesakes()
        await self.clock_watch.round()
        await self._retime()

    def _wire(self) -> None:
        """Make the services; each subscribes to its events in its constructor."""
        host, store, settings, bus = self.host, self.host.store, self.host.store.settings, EventBus()
        self.db = DbExecutor(store.database, settings.lease_s)
        self.context: NodeContext = NodeContext(store, self.clock, settings, self.db, bus, self.identity)
        context = self.context
        bus.subscribe(ChangeReported, lambda _event: self.db.invalidate())
        execute = self._executor.execute
        self.attempts: RunningAttempts = RunningAttempts(
            context, execute if self.tracer is None else self.tracer.traced(execute)
        )
        self.loop = LedgerLoop(context, self.attempts)
        self.cancelled_usage = CancelledUsage(context)
        self.sealed_commits = SealedCommits(context, host.datasets)
        self.lease_keeper, self.recovery = LeaseKeeper(context, host.handlers, host.datasets), Recovery(context)
        self.change_feed = ChangeFeed(context, host.datasets, host.process_metrics)
        self.clock_watch = ClockWatch(context)
        self.services: list[Service] = [
            self.loop, self.lease_keeper, LeaseWatchdog(context), self.recovery, Reconciler(context, self.attempts),
            Retention(context, host.process_metrics), self.sealed_commits, self.cancelled_usage,
            Monitor(context, self.attempts, host.process_metrics, self._walls), self.change_feed,
            Prefetcher(context), CommitWatch(context), LedgerCheck(context), self.clock_watch,
        ]  # fmt: skip
        if store.database.driver.is_remote and settings.listen_url != OFF:
            self.services.append(Listener(context))
        self.services += [made for make in SERVICES if (made := make(self)) is not None]
        if settings.heartbeat_url is not None:
            self.services.append(Heartbeat(context))
        if self._side is not None:  # other executors say nothing before the end
            streamer = LogStreamer(context)
            self.services.append(streamer)
            self._side.hear(streamer.add)
        self._senders = Senders(context, host.vault) if self.delivers else None
        # Last: the services have done their part of an event before people hear of it.
        Reporter(context, host.events, host.process_metrics, self.tracer)
        host.process_metrics.begin("lodger_faults_total", [service.name for service in self.services])
        if self.tracer is not None:
            self.tracer.subscribe(bus)

    async def stop(self) -> None:
        """Claim nothing more, let attempts end for ``drain_s`` of the settings, hand the rest back, flush, resign the lease."""
        if not self._started:
            return
        self._started = False
        self._forget()
        await self.loop.drain()
        await either(self.attempts.drained(), self.clock.sleep(self.context.settings.drain_s))
        for service in self.services:
            await service.stop()
        tasks = self.attempts.tasks
        self.attempts.kill()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self.loop.round()
            await self.cancelled_usage.flush()
            if self.lease is not None:
                resign = partial(leases.unregister, lease=self.lease, now_us=self.clock.now_us())
                for tenant_id, action_id in await self.db.write(resign):
                    self.context.bus.publish(self.context.event("handed_back", (tenant_id, None, action_id)))
        except Exception as error:  # noqa: BLE001 - the database may be gone; another node's recovery does it then
            self.context.bus.publish(Fault("node", error))
        self.identity.lease = None
        if self._senders is not None:
            await self._senders.stop()
        await self.sealed_commits.drain()
        await self._executor.stop()
        if self.tracer is not None:
            await self.tracer.close()
        self.db.close()

    async def _retime(self) -> None:
        """Bring the clocks to this process's zone data, and report the moved slots."""
        looked = 1
        while looked:
            looked, moved = await self.db.write(partial(retiming.retime, self.host.store))
            for each in moved:
                _log.warning(
                    "new time zone data moved the next slot of schedule %s from %s to %s",
                    each.schedule_id,
                    each.from_us,
                    each.to_us,
                )
                event = self.context.event("retimed", (each.tenant_id, each.schedule_id, None),
                                           from_us=each.from_us, next_us=each.to_us)  # fmt: skip
                self.context.bus.publish(event)

    def _written(self, _event: LedgerWritten) -> None:
        """Report a change of the ledger; called from any thread."""
        with suppress(RuntimeError):  # the loop has closed
            self._event_loop.call_soon_threadsafe(self.context.bus.publish, ChangeReported())

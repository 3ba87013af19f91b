"""The pool of warm workers of one runtime: keeps some ready behind one zygote and gives each attempt its own.

No more workers warm up at once than there are cores: an unbounded refill has the best throughput but a bad p99. The oldest ready worker is
used first.
"""

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lodger.sandbox import frames
from lodger.sandbox.doctor import Doctor
from lodger.sandbox.errors import SandboxError, ZygoteFailed
from lodger.sandbox.job import Job, Report
from lodger.sandbox.runtimes import native_libraries
from lodger.sandbox.runtimes.settings import runtime_settings
from lodger.sandbox.workers import verdict
from lodger.sandbox.workers.admission import refuse
from lodger.sandbox.workers.launcher import WorkerEnd, Zygote, zygote_settings
from lodger.sandbox.workers.verdict import Verdict
from lodger.sandbox.workers.worker_cgroup import WorkerCgroup
from lodger.sandbox.workers.worker_run import AttemptContext, NeverArmed, WorkerRun

READY = frames.HEAD.pack(0, frames.READY)
WARM_UP_S = 10.0
_TRIES = 3
_TAKE_S = 30.0
_BACK_OFF_S = (0.0, 0.05, 0.2, 1.0, 5.0)
#: Consecutive workers that die while warming up before waiting attempts fail.
_MAX_FAILURES = 4
_journal = logging.getLogger("lodger.sandbox")


def now_us() -> int:
    """Return the time of the host's clock, microseconds since 1970."""
    return time.time_ns() // 1000


@dataclass(kw_only=True, eq=False)
class WarmPool:
    """Warm workers of one runtime behind one zygote.

    Args:
        runtime: ``quickjs``, ``wasm``, ``wasm_compiler``, or ``quickjs-native`` for code that the operator trusts.
        size: number of ready workers to keep, between half of it and all; 8 per core by default.
        cache: folder of the baked realm; None for ``lodger`` in the user's cache folder.
        cores: number of workers that may start at once.
        profile: ``untrusted`` refuses to start with too few walls, ``trusted`` runs with any.
        minimum: number of layers required for profile ``untrusted``; None for :data:`lodger.sandbox.doctor.MINIMUM`.
        cgroup: the control group around all workers; None for none.
        now_us: clock for log lines, microseconds since 1970.

    Attributes:
        zygote_type: class of the zygote.
        renew_after: number of workers of a zygote, which share its address layout, before it is replaced by a new one.
        walls: maps each wall's name to whether it is active.
    """

    zygote_type = Zygote
    renew_after = 10_000

    runtime: str = "quickjs"
    size: int | None = None
    cache: Path | None = None
    cores: int | None = None
    profile: str = "untrusted"
    minimum: int | None = None
    cgroup: WorkerCgroup | None = None
    now_us: Callable[[], int] = now_us

    def __post_init__(self) -> None:
        self._cores = self.cores or len(os.sched_getaffinity(0))
        self._size = self.size or 8 * self._cores
        self._settings: dict[str, str] = {}
        self._zygote: Zygote | None = None
        self._starting: asyncio.Lock = asyncio.Lock()
        self._open = False
        self._running = 0
        self._idle: asyncio.Future[None] | None = None
        self.walls: dict[str, bool] = {}
        self._ending: Zygote | None = None
        self._first: asyncio.Future[None] | None = None  # set once the first worker is ready
        self._restarting: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._retired: dict[Zygote, asyncio.Task[None]] = {}
        self._forks = 0  # of the current zygote
        self._warming: dict[WorkerEnd, asyncio.TimerHandle] = {}
        self._ready: deque[WorkerEnd] = deque()
        self._waiting: deque[asyncio.Future[WorkerEnd]] = deque()
        self.failures = self._restarts = 0
        self._last_message = ""
        self._context = AttemptContext(0, {}, self.now_us)
        self._filling = True

    @property
    def ready(self) -> tuple[int, ...]:
        """Process ids of the ready workers, oldest first."""
        return tuple(worker.pid for worker in self._ready)

    @property
    def zygote(self) -> Zygote | None:
        """The current zygote, for reports and tests."""
        return self._zygote

    async def start(self) -> None:
        """Start the zygote and wait until workers can be had; safe to call twice. Raises ZygoteFailed, WallUnavailable, SandboxError."""
        async with self._starting:
            if self._open:
                return
            self._open = True
            try:
                await self._begin()
            except BaseException:
                await self._close()
                raise

    async def stop(self) -> None:
        """End every worker and the zygote and wait for them; safe to call twice. Running attempts end as worker_lost."""
        async with self._starting:
            await self._close()

    def _require_open(self) -> None:
        """Raise ZygoteFailed before the pool is started, and once it is stopped."""
        if not self._open:
            raise ZygoteFailed("pool_stopped", "the pool is not started", fix="await pool.start() first")

    async def _begin(self) -> None:
        """Start the zygote and wait for a worker."""
        Doctor.require_calls()
        await asyncio.to_thread(native_libraries.require, self.profile, self.runtime)
        self._settings = zygote_settings(self.runtime, await self.runtime_settings())
        self._first = asyncio.get_running_loop().create_future()
        await self._bring_up()
        try:
            async with asyncio.timeout(_TAKE_S):
                await self._first
        except TimeoutError:
            raise self._none_ready() from None

    async def attempt(self, make: Callable[[WorkerEnd, AttemptContext], WorkerRun]) -> Report:
        """Run an attempt with a ready worker, or another if it dies before it is armed, and return its report. Raises ZygoteFailed."""
        with self._counted():
            for _ in range(_TRIES):
                try:
                    return await make(await self._take(), self._context).run()
                except NeverArmed:
                    if not self._open:
                        break
            return self._report(verdict.worker_lost("workers ended before they were ready"))

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Let the end of the pool wait for the block. Raises ZygoteFailed unless the pool is started."""
        self._require_open()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if self._idle is not None and not self._running and not self._idle.done():
                self._idle.set_result(None)

    def _refused(self, job: Job) -> Report | None:
        """Return the report of a job that no worker runs; None for any other."""
        refused = refuse(job)
        return None if refused is None else self._report(refused)

    def _report(self, decided: Verdict) -> Report:
        """Return the report of an attempt that no worker has made."""
        return Report(decided.outcome, error=decided.error, walls=self.walls)

    # workers

    async def _take(self) -> WorkerEnd:
        """Return a ready worker, or wait for the next one."""
        self._require_open()
        while self._ready:
            worker = self._ready.popleft()
            if worker.death is None and not worker.lost:
                self._refill()
                return worker
            _drop(worker)
        waiter: asyncio.Future[WorkerEnd] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._refill()
        try:
            async with asyncio.timeout(_TAKE_S):
                return await waiter
        except (TimeoutError, asyncio.CancelledError) as end:
            if not waiter.cancelled() and waiter.exception() is None:
                self._give_back(waiter.result())  # it arrived at the same time and is unused
            if isinstance(end, TimeoutError):
                raise self._none_ready() from None
            raise
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _none_ready(self) -> ZygoteFailed:
        """Return the error of a pool without a ready worker."""
        return ZygoteFailed(
            "no_worker", "no worker became ready", why=self._last_message or f"none within {_TAKE_S:g} s"
        )

    def _give_back(self, worker: WorkerEnd) -> None:
        """Hand a ready worker to the attempt that has waited longest, or keep it."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(worker)
                return
        self._ready.append(worker)

    def _refill(self) -> None:
        """Fork as many workers as are wanted."""
        zygote = self._zygote
        if zygote is None or not self._open:
            return
        wanted = self._size + len(self._waiting) - len(self._ready)
        # Once all are ready, none is forked until half of them are taken: forks in a row cost less, and fewer attempts run beside one.
        self._filling = wanted > 0 and (self._filling or wanted >= (self._size + 1) // 2)
        if not self._filling:
            return
        for _ in range(self._requested() + len(self._warming), min(wanted, self._cores)):
            zygote.spawn()
            if self._zygote is not zygote:
                return  # it was lost in spawn, with all its requests

    def _adopt(self, worker: WorkerEnd) -> None:
        """Add a forked worker; after many forks the zygote is renewed."""
        loop = asyncio.get_running_loop()
        self._forks += 1
        if self._forks >= self.renew_after and self._renewing is None and self._zygote is not None:
            self._renewing = loop.create_task(self._renew(self._zygote))
        self._warming[worker] = loop.call_later(WARM_UP_S, self._on_warm, worker, b"")
        loop.add_reader(worker.socket.fileno(), self._on_readable, worker)

    def _on_readable(self, worker: WorkerEnd) -> None:
        """Receive the message of a worker that warms up, or its end."""
        # Until an attempt takes over: the worker sends READY, and nothing may follow.
        if worker in self._warming:
            try:
                message = worker.socket.recv(4096)
            except BlockingIOError:
                return
            except OSError:
                message = b""
            self._on_warm(worker, message)
        elif worker in self._ready:
            self._ready.remove(worker)
            _drop(worker)
            self._refill()

    def _on_warm(self, worker: WorkerEnd, message: bytes) -> None:
        """Add a worker that has reported that it is ready; drop one that failed, and fork another, later after each failure."""
        handle = self._warming.pop(worker, None)
        if handle is None:
            return
        handle.cancel()
        if message == READY:
            self.failures = 0
            self._restarts = 0
            if self._first is not None and not self._first.done():
                self._first.set_result(None)
            if not self._context.idle_bytes:
                self._context = AttemptContext(worker.resident_bytes(), self.walls, self.now_us)
            self._give_back(worker)
            self._refill()
            return
        _drop(worker)
        self._refill_later(_last_words(message) or "the worker ended without a message while warming up")
        if self.failures >= _MAX_FAILURES:
            self._fail_waiting(ZygoteFailed("no_worker", "workers end while warming up", why=self._last_message))

    def _on_refused(self) -> None:
        """Fork again after a pause: the kernel could not create a process; running ones will release memory and descriptors."""
        self._refill_later("the kernel cannot create another process")

    def _refill_later(self, why: str) -> None:
        """Fork again after a failure, the later the more there were in a row."""
        self.failures += 1
        self._last_message = why
        back_off = _BACK_OFF_S[min(self.failures, len(_BACK_OFF_S) - 1)]
        asyncio.get_running_loop().call_later(back_off, self._refill)

    def _fail_waiting(self, problem: ZygoteFailed) -> None:
        """Fail the attempts that wait for a worker."""
        if self._first is not None and not self._first.done():
            self._first.set_exception(problem)
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(problem)

    # the zygote

    async def runtime_settings(self) -> dict[str, str]:
        """Return the paths of the files that the runtime loads in the zygote; takes seconds if the realm must be baked."""
        return await asyncio.to_thread(runtime_settings, self.runtime, self.cache)

    def _requested(self) -> int:
        """Number of requested workers that have not arrived yet."""
        zygotes = self._retired if self._zygote is None else (self._zygote, *self._retired)
        return sum(zygote.requested for zygote in zygotes)

    async def _bring_up(self) -> None:
        """Start the first zygote and let it fork the first workers."""
        self._zygote = await self._launch()
        self._forks = 0
        self._context = AttemptContext(0, self.walls, self.now_us)
        self._refill()

    async def _renew(self, old: Zygote) -> None:
        """Replace a zygote by a new one; the old one is stopped when its last worker has ended."""
        try:
            zygote = await self._launch()
        except SandboxError as problem:
            _journal.warning("the zygote could not be renewed: %s", problem.why)
            self._forks = 0  # tried again after the same number of workers
            self._renewing = None
            return
        self._renewing = None
        if self._zygote is not old:  # it ended in the meantime and is being replaced
            await zygote.stop()
            return
        self._zygote, self._forks = zygote, 0
        self._retired[old] = asyncio.get_running_loop().create_task(self._retire(old))
        self._refill()

    async def _retire(self, zygote: Zygote) -> None:
        """Stop a renewed zygote when its last worker has ended."""
        await zygote.drained()
        await zygote.stop()
        del self._retired[zygote]

    async def _launch(self) -> Zygote:
        """Start a zygote, check its walls and record them. Raises WallUnavailable after logging all that are missing."""
        zygote: Zygote = self.zygote_type(self._adopt, lambda: self._on_lost(zygote), self._on_refused, self.cgroup)
        await zygote.start(self._settings)
        for wall, why in zygote.walls.items():
            if why:
                asked = wall != "cgroup" or (self.cgroup is not None and self.cgroup.folder is not None)
                _journal.log(logging.WARNING if asked else logging.INFO, "the wall %s is missing: %s", wall, why)
        try:
            Doctor.require(self.profile, zygote.walls, minimum=self.minimum)
            self._require_open()
        except BaseException:
            await zygote.stop()
            raise
        self.walls = {wall: not why for wall, why in zygote.walls.items()}
        return zygote

    def _on_lost(self, zygote: Zygote) -> None:
        """Drop the workers of a zygote that has ended, and start another one."""
        if self._zygote is not zygote:
            return  # a retired one: its workers were already marked as lost
        self._zygote = None
        self._forget_workers()
        if self._open:
            self._ending = zygote
            _journal.warning("the zygote ended; a new one is started")
            self._restarting = asyncio.get_running_loop().create_task(self._restart(zygote))

    async def _restart(self, old: Zygote) -> None:
        """Start a zygote in place of one that was lost, later each time."""
        await old.stop()
        while self._open and self._zygote is None:
            await asyncio.sleep(_BACK_OFF_S[min(self._restarts, len(_BACK_OFF_S) - 1)])
            self._restarts += 1  # reset when a worker is ready
            try:
                await self._bring_up()
            except SandboxError as problem:
                self._last_message = problem.why
                _journal.error("the zygote did not start: %s", problem.why)

    def _forget_workers(self) -> None:
        """Kill the workers that have no attempt yet."""
        for handle in self._warming.values():
            handle.cancel()
        for idle in (*self._warming, *self._ready):
            _drop(idle)
        self._warming.clear()
        self._ready.clear()

    async def _close(self) -> None:
        """Stop all zygotes and workers."""
        self._open = False
        self._first = None
        tasks = [task for task in (self._restarting, self._renewing, *self._retired.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._restarting = self._renewing = None
        zygote, self._zygote = self._zygote, None
        retired, self._retired = tuple(self._retired), {}
        for each in (zygote, self._ending, *retired):
            if each is not None:
                await each.stop()
        self._ending = None
        self._forget_workers()
        self._fail_waiting(ZygoteFailed("pool_stopped", "the pool was stopped"))
        if self._running:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
            self._idle = None


def _drop(worker: WorkerEnd) -> None:
    """Kill a worker that is not used."""
    if worker.socket.fileno() >= 0:
        asyncio.get_running_loop().remove_reader(worker.socket.fileno())
    worker.kill()
    worker.close()


def _last_words(message: bytes) -> str:
    """Return the text in the message of a worker that failed to warm up; empty if it ended without one."""
    return message[frames.HEAD.size + 5 :].decode("utf-8", "replace")

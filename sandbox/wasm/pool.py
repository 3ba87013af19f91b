"""The pool for tenants' WebAssembly commands: compiles a module if needed, then forks a new worker for each attempt."""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lodger.sandbox import frames
from lodger.sandbox.doctor import Doctor
from lodger.sandbox.errors import ZygoteFailed
from lodger.sandbox.job import CallHandler, Job, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.runtimes.settings import runtime_settings
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.compiler import LIMITS, Compiler
from lodger.sandbox.wasm.sealed_code import SealedCode
from lodger.sandbox.workers import verdict
from lodger.sandbox.workers.admission import refuse
from lodger.sandbox.workers.launcher import WorkerEnd, Zygote, zygote_settings
from lodger.sandbox.workers.warm_pool import WarmPool, now_us
from lodger.sandbox.workers.worker_cgroup import WorkerCgroup
from lodger.sandbox.workers.worker_run import AttemptContext, NeverArmed, WorkerRun

_READY = frames.HEAD.pack(0, frames.READY)
_WARM_UP_S = 10.0
_TRIES = 3
_journal = logging.getLogger("lodger.sandbox")


@dataclass(kw_only=True, eq=False)
class WasmPool:
    """Workers of runtime ``wasm``, one per attempt.

    Args:
        cores: number of workers that may start at once.
        profile, minimum, cgroup: see :class:`lodger.sandbox.workers.warm_pool.WarmPool`.
        code_cache: cache of compiled modules, closed with the pool; by default one in memory.
        compile_limits: of one compilation.
        now_us: clock for log lines, microseconds since 1970.

    Attributes:
        attempt_type: class that drives a worker through an attempt.
        zygote_type: class of the zygote.
        compilers_type: class of the pool that compiles.
        walls: maps each wall's name to whether it is active.
    """

    runtime = "wasm"
    attempt_type = WorkerRun
    zygote_type = Zygote
    compilers_type = WarmPool

    cores: int | None = None
    profile: str = "untrusted"
    minimum: int | None = None
    cgroup: WorkerCgroup | None = None
    code_cache: CodeCache = field(default_factory=CodeCache)
    compile_limits: Limits = LIMITS
    now_us: Callable[[], int] = now_us

    def __post_init__(self) -> None:
        self._compilers = self.compilers_type(
            runtime="wasm_compiler",
            size=1,
            cores=self.cores,
            profile=self.profile,
            minimum=self.minimum,
            cgroup=self.cgroup,
            now_us=self.now_us,
        )
        self.compiler = Compiler(self._compilers, self.code_cache, self.compile_limits)
        self._slots = asyncio.Semaphore(self.cores or len(os.sched_getaffinity(0)))
        self._starting = asyncio.Lock()
        self._zygote_lock = asyncio.Lock()  # a separate lock: stop waits for runs, and a run may be starting a zygote
        self._zygote: Zygote | None = None
        self._lost: list[Zygote] = []
        self._expected: deque[asyncio.Future[WorkerEnd]] = deque()
        self._open = False
        self._running = 0
        self._idle: asyncio.Future[None] | None = None
        self.walls: dict[str, bool] = {}

    @property
    def zygote(self) -> Zygote | None:
        """The current zygote, for reports and tests."""
        return self._zygote

    @property
    def ready(self) -> tuple[int, ...]:
        """Process ids of the ready compilers, oldest first."""
        return self._compilers.ready

    async def start(self) -> None:
        """Start both zygotes; safe to call twice. Raises ZygoteFailed, WallUnavailable."""
        async with self._starting:
            if self._open:
                return
            self._open = True
            try:
                await self._compilers.start()
                await self._bring_up()
            except BaseException:
                await self._close()
                raise

    async def stop(self) -> None:
        """End every worker and wait for it; safe to call twice. Running attempts end as worker_lost."""
        async with self._starting:
            await self._close()

    async def run(self, job: Job, host: CallHandler) -> Report:
        """Run one module in a new worker and return its report. Raises JobCancelled, with the worker killed, and ZygoteFailed."""
        refused = refuse(job)
        if refused is not None:
            return Report(refused.outcome, error=refused.error, walls=self.walls)
        if not self._open:
            raise ZygoteFailed("pool_stopped", "the pool is not started", fix="await pool.start() first")
        self._running += 1
        try:
            code = await self.compiler.code(job)
            if isinstance(code, Report):
                return code
            try:
                return await self._attempt(job, host, code)
            finally:
                code.close()
        finally:
            self._running -= 1
            if self._idle is not None and not self._running and not self._idle.done():
                self._idle.set_result(None)

    async def compile(self, job: Job) -> Report | None:
        """Compile a job's module in advance; return None if it succeeded, otherwise the report of the failure."""
        refused = refuse(job)
        if refused is not None:
            return Report(refused.outcome, error=refused.error, walls=self.walls)
        code = await self.compiler.code(job)
        if isinstance(code, Report):
            return code
        code.close()
        return None

    async def _attempt(self, job: Job, host: CallHandler, code: SealedCode) -> Report:
        """Run a job on compiled code in a new worker."""
        for _ in range(_TRIES):
            try:
                worker = await self._worker(code)
                context = AttemptContext(worker.resident_bytes(), self.walls, self.now_us)
                return await self.attempt_type(worker, job, host, context).run()
            except NeverArmed:
                if not self._open:
                    break
        self.compiler.forget(job)
        lost = verdict.worker_lost("workers ended before they were ready")
        return Report(lost.outcome, error=lost.error, walls=self.walls)

    # workers

    async def _worker(self, code: SealedCode) -> WorkerEnd:
        """Fork a worker and wait until it has loaded the code. Raises NeverArmed, ZygoteFailed."""
        async with self._slots:
            async with self._zygote_lock:
                zygote = self._zygote or await self._bring_up()
            expected: asyncio.Future[WorkerEnd] = asyncio.get_running_loop().create_future()
            self._expected.append(expected)
            zygote.spawn((code.descriptor, code.size))
            try:
                worker = await expected
            except asyncio.CancelledError:
                if not expected.cancelled() and expected.exception() is None:
                    _drop(expected.result())  # it arrived with the cancellation
                raise
            try:
                async with asyncio.timeout(_WARM_UP_S):
                    message = await asyncio.get_running_loop().sock_recv(worker.socket, 4096)
            except (TimeoutError, OSError):
                message = b""
            except BaseException:
                _drop(worker)
                raise
            if message != _READY:
                _drop(worker)
                reason = message[frames.HEAD.size + 5 :].decode("utf-8", "replace")
                _journal.error("a worker could not load compiled code: %s", reason or "it ended without a message")
                raise NeverArmed
            return worker

    def _adopt(self, worker: WorkerEnd) -> None:
        """Hand a forked worker to the attempt that waits for it."""
        expected = self._expected.popleft()
        if expected.done():  # the attempt was cancelled
            _drop(worker)
        else:
            expected.set_result(worker)

    # the zygote

    async def runtime_settings(self) -> dict[str, str]:
        """Return the paths of the files that the runtime loads in the zygote."""
        return runtime_settings("wasm")

    async def _bring_up(self) -> Zygote:
        """Start the zygote and check its walls."""
        self._require_open()
        await self._stop_lost()
        zygote = self.zygote_type(self._adopt, self._on_lost, self._on_refused, self.cgroup)
        await zygote.start(zygote_settings("wasm", await self.runtime_settings()))
        try:
            Doctor.require(self.profile, zygote.walls, minimum=self.minimum)
            self._require_open()
        except BaseException:
            await zygote.stop()
            raise
        self.walls = {wall: not why for wall, why in zygote.walls.items()}
        self._zygote = zygote
        return zygote

    def _require_open(self) -> None:
        """Raise ZygoteFailed if the pool was stopped."""
        if not self._open:
            raise ZygoteFailed("pool_stopped", "the pool was stopped")

    def _on_lost(self) -> None:
        """Forget a zygote that has ended; the attempts that wait for its workers get others."""
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            _journal.warning("the zygote of runtime wasm ended; the next attempt starts a new one")
            self._lost.append(zygote)
        self._fail_expected()

    def _on_refused(self) -> None:
        """Report to the attempt that has waited longest that its worker could not be forked."""
        # The kernel had no process, memory or descriptor for another worker.
        expected = self._expected.popleft()
        if not expected.done():
            expected.set_exception(NeverArmed())

    def _fail_expected(self) -> None:
        """Report to all attempts that wait for a worker that none comes."""
        while self._expected:
            self._on_refused()

    async def _stop_lost(self) -> None:
        """Stop the zygotes that were lost."""
        while self._lost:
            await self._lost.pop().stop()

    async def _close(self) -> None:
        """Stop the zygote and its workers."""
        self._open = False
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            await zygote.stop()
        await self._stop_lost()
        self._fail_expected()
        await self._compilers.stop()
        if self._running:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
            self._idle = None
        self.code_cache.close()


def _drop(worker: WorkerEnd) -> None:
    """Kill a worker that is not used."""
    worker.kill()
    worker.close()

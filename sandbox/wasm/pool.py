"""The pool for tenants' WebAssembly commands: compiles a module if needed, then forks a new worker for each attempt."""

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from functools import partial

from lodger.sandbox.job import CallHandler, Job, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.runtimes.settings import runtime_settings
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.compiler import LIMITS, Compiler
from lodger.sandbox.wasm.sealed_code import SealedCode
from lodger.sandbox.workers.launcher import WorkerEnd, Zygote, zygote_settings
from lodger.sandbox.workers.warm_pool import WarmPool
from lodger.sandbox.workers.worker_run import AttemptContext, NeverArmed, WorkerRun
from lodger.sandbox.workers.zygote_pool import READY, WARM_UP_S, ZygotePool, drop, last_words

_journal = logging.getLogger("lodger.sandbox")


@dataclass(kw_only=True, eq=False)
class WasmPool(ZygotePool):
    """Workers of runtime ``wasm``, one per attempt.

    Args:
        code_cache: cache of compiled modules, closed with the pool; by default one in memory.
        compile_limits: of one compilation.

    The other arguments are those of :class:`lodger.sandbox.workers.zygote_pool.ZygotePool`.

    Attributes:
        attempt_type: class that drives a worker through an attempt.
        compilers_type: class of the pool that compiles.
    """

    runtime = "wasm"
    attempt_type = WorkerRun
    compilers_type = WarmPool

    code_cache: CodeCache = field(default_factory=CodeCache)
    compile_limits: Limits = LIMITS

    def __post_init__(self) -> None:
        super().__post_init__()
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
        self._slots = asyncio.Semaphore(self._cores)
        self._zygote_lock = asyncio.Lock()  # a separate lock: stop waits for runs, and a run may be starting a zygote
        self._lost: list[Zygote] = []
        self._expected: deque[asyncio.Future[WorkerEnd]] = deque()

    @property
    def ready(self) -> tuple[int, ...]:
        """Process ids of the ready compilers, oldest first."""
        return self._compilers.ready

    async def _begin(self) -> None:
        """Start both zygotes."""
        self._settings = zygote_settings(self.runtime, await self.runtime_settings())
        await self._compilers.start()
        await self._bring_up()

    async def run(self, job: Job, host: CallHandler) -> Report:
        """Run one module in a new worker and return its report. Raises JobCancelled, with the worker killed, and ZygoteFailed."""
        if refused := self._refused(job):
            return refused
        return await self._attempt(partial(self._run, job, host), partial(self.compiler.forget, job))

    async def compile(self, job: Job) -> Report | None:
        """Compile a job's module in advance; return None if it succeeded, otherwise the report of the failure."""
        if refused := self._refused(job):
            return refused
        code = await self.compiler.code(job)
        if isinstance(code, Report):
            return code
        code.close()
        return None

    async def _run(self, job: Job, host: CallHandler) -> Report:
        """Run one module in one worker. Raises NeverArmed."""
        code = await self.compiler.code(job)
        if isinstance(code, Report):
            return code
        try:
            worker = await self._worker(code)
            context = AttemptContext(worker.resident_bytes(), self.walls, self.now_us)
            return await self.attempt_type(worker, job, host, context).run()
        finally:
            code.close()

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
                    drop(expected.result())  # it arrived with the cancellation
                raise
            try:
                async with asyncio.timeout(WARM_UP_S):
                    message = await asyncio.get_running_loop().sock_recv(worker.socket, 4096)
            except (TimeoutError, OSError):
                message = b""
            except BaseException:
                drop(worker)
                raise
            if message != READY:
                drop(worker)
                reason = last_words(message) or "it ended without a message"
                _journal.error("a worker could not load compiled code: %s", reason)
                raise NeverArmed
            return worker

    def _adopt(self, worker: WorkerEnd) -> None:
        """Hand a forked worker to the attempt that waits for it."""
        expected = self._expected.popleft()
        if expected.done():  # the attempt was cancelled
            drop(worker)
        else:
            expected.set_result(worker)

    # the zygote

    async def runtime_settings(self) -> dict[str, str]:
        """Return the paths of the files that the runtime loads in the zygote."""
        return runtime_settings("wasm")

    async def _bring_up(self) -> Zygote:
        """Start the zygote."""
        self._require_open()
        await self._stop_lost()
        self._zygote = await self._launch()
        return self._zygote

    def _on_lost(self, zygote: Zygote) -> None:
        """Forget a zygote that has ended; the attempts that wait for its workers get others."""
        if self._zygote is zygote:
            self._zygote = None
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
        await self._attempts_ended()
        self.code_cache.close()

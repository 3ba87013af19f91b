"""The pool for tenants' WebAssembly commands: compiles a module if needed, then gives the code to a warm worker."""

from dataclasses import dataclass, field

from lodger.sandbox.frames import CODE
from lodger.sandbox.job import CallHandler, Job, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.compiler import LIMITS, Compiler
from lodger.sandbox.workers.version_image import VersionImage
from lodger.sandbox.workers.warm_pool import WarmPool
from lodger.sandbox.workers.worker_run import WorkerRun


@dataclass(kw_only=True, eq=False)
class WasmPool(WarmPool):
    """Warm workers of runtime ``wasm``.

    Args:
        size: number of ready workers to keep.
        code_cache: cache of compiled modules, closed with the pool; by default one in memory.
        compile_limits: of one compilation.

    The other arguments are those of :class:`lodger.sandbox.workers.warm_pool.WarmPool`.

    Attributes:
        attempt_type: class that drives a worker through an attempt.
        compilers_type: class of the pool that compiles.
        compilers: the pool that compiles.
    """

    attempt_type = WorkerRun
    compilers_type = WarmPool

    runtime: str = field(default="wasm", init=False)
    size: int | None = 2
    code_cache: CodeCache = field(default_factory=CodeCache)
    compile_limits: Limits = LIMITS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.compilers = self.compilers_type(
            runtime="wasm_compiler",
            size=1,
            cores=self.cores,
            profile=self.profile,
            minimum=self.minimum,
            cgroup=self.cgroup,
            now_us=self.now_us,
        )
        self.compiler = Compiler(self.compilers, self.code_cache, self.compile_limits)

    async def _begin(self) -> None:
        """Start both zygotes."""
        await self.compilers.start()
        await super()._begin()

    async def run(self, job: Job, host: CallHandler) -> Report:
        """Run one module in a new worker and return its report. Raises JobCancelled, with the worker killed, and ZygoteFailed."""
        if refused := self._refused(job):
            return refused
        with self._counted():
            code = await self.compiler.code(job)
            if isinstance(code, Report):
                return code
            image = VersionImage(code.descriptor, CODE.pack(code.size))
            try:
                report = await self.attempt(lambda worker, about: self.attempt_type(worker, job, host, about, image))
            finally:
                code.close()
        if report.outcome is Outcome.WORKER_LOST:  # it may be no code
            self.compiler.forget(job)
        return report

    async def compile(self, job: Job) -> Report | None:
        """Compile a job's module in advance; return None if it succeeded, otherwise the report of the failure."""
        if refused := self._refused(job):
            return refused
        code = await self.compiler.code(job)
        if isinstance(code, Report):
            return code
        code.close()
        return None

    async def _close(self) -> None:
        """Stop the zygotes and their workers."""
        self._open = False
        await self.compilers.stop()
        await super()._close()
        self.code_cache.close()

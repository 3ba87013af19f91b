"""The pool of workers that runs each job in a new isolated process: ``report = await pool.run(job, host)``."""

from dataclasses import dataclass
from functools import partial

from lodger.sandbox.job import CallHandler, Job, Report
from lodger.sandbox.script_images import ScriptImages
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.compiler import PERMANENT
from lodger.sandbox.wasm.pool import WasmPool
from lodger.sandbox.workers.admission import refuse
from lodger.sandbox.workers.launcher import WorkerEnd
from lodger.sandbox.workers.version_image import VersionImage
from lodger.sandbox.workers.warm_pool import WarmPool
from lodger.sandbox.workers.worker_run import AttemptContext, WorkerRun


@dataclass(kw_only=True, eq=False)
class Pool(WarmPool):
    """Warm workers for scripts; workers for WebAssembly are started with the first module.

    Args:
        runtime: ``quickjs``, or ``quickjs-native`` for code that the operator trusts; a job cannot choose it.
        code_cache: cache of compiled WebAssembly modules, by default one in memory; with one, and runtime ``quickjs``, scripts too are
            compiled once (:mod:`lodger.sandbox.script_images`).

    The other arguments are those of :class:`lodger.sandbox.workers.warm_pool.WarmPool`.
    """

    code_cache: CodeCache | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        is_scripts = self.runtime == "quickjs"
        self._images = ScriptImages(self, self.code_cache) if self.code_cache is not None and is_scripts else None
        self._wasm: WasmPool | None = None

    async def run(self, job: Job, host: CallHandler) -> Report:
        """Run one job in a new worker and return its report. Raises JobCancelled, with the worker killed, and ZygoteFailed."""
        if refused := self._refused(job):
            return refused
        if job.bundle.runtime == "wasm":
            return await (await self.for_modules()).run(job, host)
        image = self._images and self._images.find(job)
        try:
            report = await self.attempt(partial(self._worker_run, job, host, [image] if image else []))
        finally:
            if image:
                image.close()
        # Evaluating modules for an image takes no longer than in this attempt: what exceeded its limits is not tried once more.
        if not image and self._images and self._open and report.outcome not in PERMANENT:
            self._images.want(job)
        return report

    def _worker_run(
        self, job: Job, host: CallHandler, images: list[VersionImage], worker: WorkerEnd, context: AttemptContext
    ) -> WorkerRun:
        """Return the driver of an attempt in a worker; the first one takes the image, if there is one."""
        # An image is tried once: where a worker ends before it is armed, the next one compiles.
        return WorkerRun(worker, job, host, context, images.pop() if images else None)

    async def compile(self, job: Job) -> bool:
        """Compile a job's modules in advance, if that was not done yet; return whether attempts have an image. Raises ZygoteFailed."""
        return self._images is not None and refuse(job) is None and await self._images.make(job)

    async def for_modules(self) -> WasmPool:
        """Return the pool for WebAssembly, started on first use and stopped with this pool. Raises ZygoteFailed, WallUnavailable."""
        async with self._starting:
            self._require_open()
            if self._wasm is None:
                self._wasm = WasmPool(
                    cores=self._cores,
                    profile=self.profile,
                    minimum=self.minimum,
                    cgroup=self.cgroup,
                    code_cache=self.code_cache or CodeCache(),
                    now_us=self.now_us,
                )
        await self._wasm.start()
        return self._wasm

    async def _close(self) -> None:
        """Stop the workers and release the images."""
        self._open = False
        if self._images is not None:
            await self._images.close()
        wasm, self._wasm = self._wasm, None
        if wasm is not None:
            await wasm.stop()
        if self.code_cache is not None:
            self.code_cache.close()
        await super()._close()

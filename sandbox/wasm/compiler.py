"""Compiler of tenants' modules in sandbox workers; a module that exceeded its limits is not compiled again."""

import asyncio
import logging
import os
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from weakref import WeakValueDictionary

from lodger.sandbox import frames
from lodger.sandbox.job import Job, NoHost, Report, ScriptError
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.sealed_code import SealedCode, SealedCodeWriter
from lodger.sandbox.workers import verdict
from lodger.sandbox.workers.launcher import WorkerEnd
from lodger.sandbox.workers.verdict import Verdict
from lodger.sandbox.workers.warm_pool import WarmPool
from lodger.sandbox.workers.worker_run import AttemptContext, WorkerRun

#: Limits of one compilation; enough for a module of 8 MiB.
LIMITS = Limits(cpu_ms=15_000, wall_ms=60_000, memory_bytes=512 * MIB)
#: Maximum size of compiled code.
MAX_CODE_BYTES = 128 * MIB
#: Outcomes that the same module would have again.
PERMANENT = frozenset({
    Outcome.COMPILE_ERROR, Outcome.CPU_LIMIT, Outcome.MEMORY_LIMIT, Outcome.SOURCE_TOO_LARGE, Outcome.PROTOCOL_ERROR,
})  # fmt: skip
_MAX_REFUSED = 1000
_SMALL = 1 << 18
_journal = logging.getLogger("lodger.sandbox")


class Compilation(WorkerRun):
    """An attempt that returns compiled code, which is written to a memory file as it arrives."""

    max_bytes = MAX_CODE_BYTES

    def __init__(self, writer: SealedCodeWriter, job: Job, worker: WorkerEnd, context: AttemptContext) -> None:
        super().__init__(worker, job, NoHost(), context)
        self._writer = writer

    def _payload(self) -> tuple[int, bytes]:
        """Return the module's bytes, which are compiled."""
        return frames.BUNDLE, self._job.bundle.wasm or b""

    def _longest_frames(self) -> dict[int, int]:
        """Return the maximum payload of each kind of frame, with that of compiled code."""
        return super()._longest_frames() | {frames.ARTEFACT: self._limits.frame_bytes}

    def _frame(self, kind: int, payload: bytes) -> None:
        """Handle one frame of the compiler."""
        if kind == frames.ARTEFACT and self._armed:
            self._code(payload)
        elif kind in (frames.CALL, frames.LOG, frames.LOG_PART, frames.DROPPED):
            self._decide(verdict.protocol_error("an unexpected frame of the compiler"))
        else:
            super()._frame(kind, payload)

    def _code(self, payload: bytes) -> None:
        """Append a part of the compiled code, up to the limit."""
        if self._writer.size + len(payload) > self.max_bytes:
            message = f"the compiled module is larger than {self.max_bytes} bytes"
            self._decide(Verdict(Outcome.SOURCE_TOO_LARGE, ScriptError("LimitExceeded", message)))
            return
        try:
            self._writer.write(payload)
        except OSError:
            self._decide(verdict.engine_fault("the engine had no memory for compiled code"))

    def _done(self, payload: bytes) -> None:
        """End the compilation with its code, if that is complete."""
        if payload == b"%d" % self._writer.size and self._writer.size:
            self._decide(Verdict(Outcome.OK))
        else:
            self._decide(verdict.protocol_error("incomplete compiled code"))


class Compiler:
    """Source of compiled code for jobs: the code cache, or a compilation; one at a time per tenant, each module once.

    Args:
        pool: whose workers compile, of runtime ``wasm_compiler``; started and stopped by the owner.
        code_cache: cache of compiled code.
        limits: of one compilation.

    Attributes:
        compilation: class of the attempt that compiles.
        at_once: number of compilations at once.
        compiled: number of compilations, failed ones included.
        cpu_ms: total CPU time of all compilations.
    """

    compilation = Compilation
    at_once = len(os.sched_getaffinity(0))

    def __init__(self, pool: WarmPool, code_cache: CodeCache, limits: Limits = LIMITS) -> None:
        self._pool = pool
        self._code_cache = code_cache
        self._limits = limits
        self._refused: OrderedDict[bytes, Report] = OrderedDict()
        self._tenant_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._slots = asyncio.Semaphore(self.at_once)
        self.compiled = 0
        self.cpu_ms = 0.0

    async def code(self, job: Job) -> SealedCode | Report:
        """Return the code of a job's module, which the caller closes, or the report of its failed compilation. Raises ZygoteFailed."""
        binding = await self._binding(job)
        known = self._refused.get(binding) or self._code_cache.find(binding)
        if known is not None:
            return known
        async with self._tenant_locks.setdefault(
            job.tenant, asyncio.Lock()
        ):  # so that slow modules do not delay other tenants
            known = self._refused.get(binding) or self._code_cache.find(binding)
            if known is None:
                known = await self._code_cache.recall(job.tenant, binding)
            if known is None:
                async with self._slots:
                    known = await self._compile(job, binding)
            return known

    def forget(self, job: Job) -> None:
        """Delete a module's code, so that the next attempt compiles it again."""
        self._code_cache.drop(job.tenant, self._code_cache.binding(job.tenant, job.bundle.wasm or b""))

    async def _binding(self, job: Job) -> bytes:
        """Return the cache key of a job's code."""
        wasm = job.bundle.wasm or b""
        bind = partial(self._code_cache.binding, job.tenant, wasm)
        return bind() if len(wasm) < _SMALL else await asyncio.to_thread(bind)

    def _limits_of(self, _job: Job) -> Limits:
        """Return the limits of a job's compilation."""
        return self._limits

    async def _compile(self, job: Job, binding: bytes) -> SealedCode | Report:
        """Compile in a worker; return the code, or the report of a failure."""
        writer = self._code_cache.begin(binding)
        try:
            order = replace(job, limits=self._limits_of(job), tag=f"compile {job.tag}", trace=None)
            report = await self._pool.attempt(partial(self.compilation, writer, order))
            self.compiled += 1
            self.cpu_ms += report.usage.cpu_ms
            if report.outcome is Outcome.OK:
                code = self._code_cache.keep(job.tenant, binding, writer.finish())
                try:
                    if self._code_cache.disk is not None:
                        await asyncio.to_thread(self._code_cache.disk.store, job.tenant, binding, code)
                except BaseException:
                    code.close()
                    raise
                return code
        finally:
            writer.drop()
        return self._record(job.tenant, binding, report)

    def _record(self, tenant: str, binding: bytes, report: Report) -> Report:
        """Keep the failure of a compilation, so that it is not repeated."""
        error = report.error
        if error is not None and report.outcome is Outcome.PROTOCOL_ERROR:
            _journal.warning("compiled code of tenant %s was refused: %s", tenant, error.message)
        if error is not None and report.outcome is not Outcome.COMPILE_ERROR:
            report = replace(report, error=replace(error, message=f"compilation of the module: {error.message}"))
        if report.outcome in PERMANENT:
            self._refused[binding] = report
            while len(self._refused) > _MAX_REFUSED:
                self._refused.popitem(last=False)
        return report

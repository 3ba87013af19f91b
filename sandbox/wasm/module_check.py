"""Check of WebAssembly modules at upload, by compiling them in a sandbox worker that is started for it.

The client gets a compile error with the upload, and the engine's process never runs the compiler. The compiled code is cached for the node
that runs it.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from typing import NamedTuple

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Job, Report
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.tenant_locks import TenantLocks
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.compiler import LIMITS, Compiler
from lodger.sandbox.wasm.sealed_code import SealedCode
from lodger.sandbox.workers.warm_pool import WarmPool


class Checked(NamedTuple):
    """Result of the check of a module.

    Attributes:
        refused: report of the failed compilation; None if it succeeded.
        cpu_ms: CPU time of the compiler, 0 when the code was in the cache.
    """

    refused: Report | None
    cpu_ms: float


class ModuleChecker:
    """Check modules for synchronous callers on any thread; a worker is started for each module, and each tenant has one at a time.

    Args:
        code_cache: factory of the code cache, called for each module; the cache is closed afterwards.
        profile, minimum: see :class:`lodger.sandbox.workers.warm_pool.WarmPool`.
    """

    def __init__(
        self,
        code_cache: Callable[[], CodeCache] = CodeCache,
        *,
        profile: str = "untrusted",
        minimum: int | None = None,
    ) -> None:
        self._code_cache = code_cache
        self._profile = profile
        self._minimum = minimum
        self._slots = threading.BoundedSemaphore(len(os.sched_getaffinity(0)))
        self._tenant_locks = TenantLocks()

    def judge(self, job: Job) -> Checked:
        """Compile a job's module and return the result. Blocks.

        Raises:
            SandboxError: the host cannot raise the walls, or no worker is available.
        """
        with self._tenant_locks.held(job.tenant), self._slots:
            return self._compile_in_thread(job)

    def _compile_in_thread(self, job: Job) -> Checked:
        # In a separate thread: the caller's may have a running event loop, and the launcher ends with the thread that started it.
        found: list[Checked] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                found.append(asyncio.run(self._compile(job)))
            except BaseException as problem:  # noqa: BLE001 - it is raised in the caller's thread
                failed.append(problem)

        thread = threading.Thread(target=work, name="lodger-module-check", daemon=True)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return found[0]

    async def _compile(self, job: Job) -> Checked:
        """Compile a module to check it."""
        pool = WarmPool(runtime="wasm_compiler", size=1, cores=1, profile=self._profile, minimum=self._minimum)
        code_cache = self._code_cache()
        try:
            await pool.start()
            compiler = Compiler(pool, code_cache, LIMITS)
            code = await compiler.code(job)
        finally:
            await pool.stop()
            code_cache.close()
        if isinstance(code, SealedCode):
            code.close()
            return Checked(None, compiler.cpu_ms)
        if code.outcome is Outcome.WORKER_LOST:
            why = code.error.message if code.error else ""
            raise SandboxError("no_worker", "the module could not be compiled now", why=why, fix="try again")
        return Checked(code, compiler.cpu_ms)

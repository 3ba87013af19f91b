"""Check of a WebAssembly module when it is stored: it is compiled in a sandboxed worker that is started for it.

The client gets a compile error with the upload, and the engine's process never runs the compiler. The compiled code is cached for nodes of
the same user.
"""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.settings import Settings
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Bundle, Job, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.tenant_locks import TenantLocks

if TYPE_CHECKING:
    from lodger.engine.service.checks.trial_budget import TrialBudget


class ModuleCheck:
    """Compiles modules for callers on any thread, one at a time for each tenant.

    Args:
        budget: charged with the compiler's CPU time.
    """

    def __init__(self, settings: Settings, budget: "TrialBudget") -> None:
        self._settings = settings
        self._budget = budget
        self._slots = threading.BoundedSemaphore(len(os.sched_getaffinity(0)))
        self._tenant_locks = TenantLocks()

    def require(self, tenant_id: str, wasm: bytes, limits: Limits) -> None:
        """Compile a module, blocking until it is done.

        Raises:
            InputError: module_refused, module_too_costly.
            Conflict: budget_used_up.
            Unavailable: no worker can be started, or not with the walls that this host requires.
        """
        self._budget.require(tenant_id)
        job = Job(Bundle({}, wasm=wasm), limits, tag="check", tenant=tenant_id)
        try:
            # In a thread: the caller may have a running event loop, and the launcher ends with the thread that started it.
            with (
                self._tenant_locks.held(tenant_id),
                self._slots,
                ThreadPoolExecutor(1, "lodger-module-check") as thread,
            ):
                refused, cpu_ms = thread.submit(asyncio.run, self.compiled(job)).result()
        except SandboxError as problem:
            raise Unavailable.of(problem) from problem
        self._budget.charge(tenant_id, cpu_ms)
        if refused is None:
            return
        why = refused.error.message if refused.error else refused.outcome.value
        if refused.outcome is Outcome.COMPILE_ERROR:
            raise InputError("module_refused", reason=why, details={"outcome": refused.outcome.value})
        raise InputError("module_too_costly", reason=why, details={"outcome": refused.outcome.value})

    async def compiled(self, job: Job) -> tuple[Report | None, float]:
        """Return the report of a failed compilation, None if it succeeded, and the compiler's CPU time in milliseconds.

        Raises:
            SandboxError: the host cannot raise the walls, or no worker is available.
        """
        from lodger.sandbox.wasm.code_cache import CodeCache
        from lodger.sandbox.wasm.compiler import Compiler
        from lodger.sandbox.workers.warm_pool import WarmPool

        settings = self._settings
        pool = WarmPool(
            runtime="wasm_compiler", size=1, cores=1, profile=settings.profile, minimum=settings.walls_minimum
        )
        cache = CodeCache.lasting(settings.cache_dir)
        compiler = Compiler(pool, cache)
        try:
            await pool.start()
            code = await compiler.code(job)
        finally:
            await pool.stop()
            cache.close()
        if not isinstance(code, Report):
            code.close()
            return None, compiler.cpu_ms
        if code.outcome is Outcome.WORKER_LOST:
            why = code.error.message if code.error else ""
            raise SandboxError("no_worker", "the module could not be compiled now", why=why, fix="try again")
        return code, compiler.cpu_ms

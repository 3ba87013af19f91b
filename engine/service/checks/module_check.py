"""Check of a WebAssembly module when it is stored: it is compiled in a sandboxed worker."""

import threading
from functools import partial
from typing import TYPE_CHECKING

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.settings import Settings
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Bundle, Job
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from lodger.engine.service.checks.trial_budget import TrialBudget
    from lodger.sandbox.wasm.module_check import ModuleChecker


class ModuleCheck:
    """Compiles modules and caches the code for nodes of the same user. No worker is started before the first module.

    Args:
        budget: charged with the compiler's CPU time.
    """

    def __init__(self, settings: Settings, budget: "TrialBudget") -> None:
        self._settings = settings
        self._budget = budget
        self._making = threading.Lock()
        self._made: ModuleChecker | None = None

    @property
    def _intake(self) -> "ModuleChecker":
        """Return the checker of WebAssembly modules, made at first use."""
        from lodger.engine.node.executors.sandbox_executor import code_cache
        from lodger.sandbox.wasm.module_check import ModuleChecker

        with self._making:
            if self._made is None:
                settings = self._settings
                self._made = ModuleChecker(
                    partial(code_cache, settings), profile=settings.profile, minimum=settings.walls_minimum
                )
            return self._made

    def require(self, tenant_id: str, wasm: bytes, limits: Limits) -> None:
        """Compile a module, blocking until it is done.

        Raises:
            InputError: module_refused, module_too_costly.
            Conflict: budget_used_up.
            Unavailable: no worker can be started, or not with the walls that this host requires.
        """
        self._budget.require(tenant_id)
        try:
            ended, cpu_ms = self._intake.judge(Job(Bundle({}, wasm=wasm), limits, tag="check", tenant=tenant_id))
        except SandboxError as problem:
            raise Unavailable.of(problem) from problem
        self._budget.charge(tenant_id, cpu_ms)
        if ended is None:
            return
        why = ended.error.message if ended.error else ended.outcome.value
        if ended.outcome is Outcome.COMPILE_ERROR:
            raise InputError("module_refused", reason=why, details={"outcome": ended.outcome.value})
        raise InputError("module_too_costly", reason=why, details={"outcome": ended.outcome.value})

"""Arenas of the matrix: pools of one runtime with walls or checks removed."""

from dataclasses import replace
from pathlib import Path

from tests.escape.matrix import realm_edits
from tests.escape.matrix.careless_parent import attempt_type
from tests.escape.matrix.pools import WeakPool, WeakWasmPool
from tests.escape.matrix.weakening import EXCESS_BYTES, Weakening

from lodger.escape import owned_guest
from lodger.escape.arena import COMPILE_LIMITS, Arena, CommandArena, PoolArena, limits_of, settings_for
from lodger.escape.case import Case
from lodger.sandbox.job import CallHandler, Job, Report
from lodger.sandbox.pool import Pool
from lodger.sandbox.workers.worker_run import WorkerRun

_WEAKENED = {"quickjs": "weak_quickjs.py", "quickjs-native": "weak_native.py", "wasm": "weak_wasm.py"}


def weak_settings(runtime: str, case: Case, weak: Weakening) -> dict[str, str]:
    """Return the settings of the boot program and the runtime of a pool."""
    if runtime == "engine":
        return {}
    settings = settings_for(runtime)
    if weak.realm and runtime != "wasm":
        settings = dict((realm_edits.realm if runtime == "quickjs" else realm_edits.native)(weak.realm))
    settings |= {"without": " ".join(sorted(weak.without)), **weak.settings}
    if case.guest is not None:
        settings |= owned_guest.settings(case.guest())
    limits = limits_of(case)
    reported = {name: getattr(limits, name) for name in weak.parent} | dict(weak.header)
    if weak.worker or reported:
        settings["runtime_path"] = str(Path(__file__).with_name(_WEAKENED[runtime]))
        settings["escape_worker"] = " ".join(sorted(weak.worker))
        settings["escape_header"] = " ".join(f"{name}={value}" for name, value in sorted(reported.items()))
        settings["escape_excess"] = str(EXCESS_BYTES)
    return settings


class _CarelessScriptArena(PoolArena[Pool]):
    """The arena of a pool for scripts with another class of attempts."""

    def __init__(self, pool: Pool, attempt: type[WorkerRun]) -> None:
        super().__init__(pool)
        self._attempt = attempt

    async def run(self, job: Job, host: CallHandler) -> Report:
        """Run one script without the checks before an attempt, and return its report."""
        return await self._pool.attempt(lambda worker, around: self._attempt(worker, job, host, around))


def weak_arena(runtime: str, settings: dict[str, str], weak: Weakening) -> Arena:
    """Return the arena of a runtime with a weakening, not yet started."""
    attempt = attempt_type(weak)
    if runtime == "engine":
        return Arena()
    if runtime == "wasm":
        limits = COMPILE_LIMITS
        if weak.compiling is not None:
            limits = replace(limits, cpu_ms=weak.compiling[0], memory_bytes=weak.compiling[1])
        commands = WeakWasmPool(settings, profile="trusted", compile_limits=limits)
        commands.attempt_type = attempt
        return CommandArena(commands)
    pool = WeakPool(settings, runtime=runtime, size=2, profile="trusted")
    return PoolArena(pool) if attempt is WorkerRun else _CarelessScriptArena(pool, attempt)

"""Where attacks are tried: a standing pool of one runtime, whole or with something taken away."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from lodger.sandbox.attempt import Attempt
from lodger.sandbox.escape import invariants, owned_guest, realms
from lodger.sandbox.escape.careless import attempt_type
from lodger.sandbox.escape.case import Case
from lodger.sandbox.escape.layers import EXCESS_BYTES, Weakening
from lodger.sandbox.escape.neighbours import ID as NEIGHBOUR
from lodger.sandbox.job import Host, Job, Report
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool
from lodger.sandbox.wasm_pool import WasmPool

#: What a case gets unless it says otherwise: low, so that hundreds of attacks take a minute.
LIMITS = {"cpu_ms": 100, "wall_ms": 1500, "memory_bytes": 32 * MIB}
#: Of one compilation of a tenant's module, in the suite: low too.
COMPILE_LIMITS = Limits(cpu_ms=120, wall_ms=5000, memory_bytes=128 * MIB)
#: ``engine`` is no runtime: no worker is needed for what it attacks.
RUNTIMES = ("quickjs", "quickjs-native", "wasm", "engine")
WHOLE = Weakening()

_SETTLE_S = 20.0
_LOOK_S = 0.001
_WEAKENED = {"quickjs": "weakened.py", "quickjs-native": "weakened_native.py", "wasm": "weakened_wasm.py"}


def promised(case: Case) -> Limits:
    """Give the limits that a case is held to."""
    return Limits(**{**LIMITS, **case.limits})


def settings_for(runtime: str, case: Case | None = None, weakening: Weakening = WHOLE) -> dict[str, str]:
    """Give what the pool's zygote is told; cases of equal settings share a pool."""
    settings: dict[str, str] = {}
    if runtime == "engine":
        return settings
    if runtime == "quickjs":
        settings = realms.realm(weakening.realm).settings()
    elif runtime == "quickjs-native":
        settings = dict(realms.native(weakening.realm))
    if weakening.without:
        settings["without"] = " ".join(sorted(weakening.without))
    settings |= weakening.settings
    if weakening.host == "naive" or weakening.late_cpu_ms or weakening.late_wall_ms:
        believes = int(weakening.host == "naive")
        settings["escape_attempt"] = f"{believes} {weakening.late_cpu_ms} {weakening.late_wall_ms}"
    if case is None:
        return settings
    if case.guest is not None:
        settings |= owned_guest.settings(case.guest())
    limits = promised(case)
    told = {name: getattr(limits, name) for name in weakening.parent} | dict(weakening.header)
    if weakening.worker or told:
        settings["runtime_path"] = str(Path(__file__).with_name(_WEAKENED[runtime]))
        settings["escape_worker"] = " ".join(sorted(weakening.worker))
        settings["escape_header"] = " ".join(f"{name}={value}" for name, value in sorted(told.items()))
        settings["escape_excess"] = str(EXCESS_BYTES)
    return settings


class Arena:
    """Where nothing stands: for what is asked of the engine itself, in this process.

    Attributes:
        walls: which walls stand.
    """

    def __init__(self) -> None:
        self.walls: dict[str, bool] = {}

    async def start(self) -> None:
        """Bring it up. Raises ZygoteFailed, WallUnavailable."""

    async def stop(self) -> None:
        """Take it down; safe twice."""

    async def settled(self) -> None:
        """Wait until nothing is under way, so that what this process owns can be compared."""

    def waiting(self) -> tuple[int, ...]:
        """Give the workers that wait for a job, the next one first; none where they are made for it."""
        return ()

    def busy(self) -> tuple[int, ...]:
        """Give the workers that were made for a job and live."""
        return ()

    def worker_uid(self) -> int:
        """Give the uid of its workers."""
        return os.geteuid()

    async def run(self, _job: Job, _host: Host) -> Report:
        """Run one job."""
        return Report(Outcome.ENGINE_FAULT)


class ScriptArena(Arena):
    """A pool for scripts."""

    def __init__(self, runtime: str, settings: dict[str, str], attempt: type[Attempt]) -> None:
        super().__init__()
        metered = bool(settings.get("fuel_artefact"))
        self._pool = Pool(runtime=runtime, settings=settings, size=2, profile="trusted", metered=metered)
        self._attempt = attempt

    async def start(self) -> None:
        """Bring it up. Raises ZygoteFailed, WallUnavailable."""
        await self._pool.start()
        self.walls = self._pool.walls

    async def stop(self) -> None:
        """Take it down; safe twice."""
        await self._pool.stop()

    async def settled(self) -> None:
        """Wait for two ready workers."""
        async with asyncio.timeout(_SETTLE_S):
            while len(self._pool.ready) < 2:  # noqa: ASYNC110 - the pool announces no readiness, and need not for this
                await asyncio.sleep(_LOOK_S)

    def waiting(self) -> tuple[int, ...]:
        """Give the ready workers."""
        return self._pool.ready

    def worker_uid(self) -> int:
        """Give the uid of its workers."""
        return invariants.uid_of(self._pool.ready[0])

    async def run(self, job: Job, host: Host) -> Report:
        """Run one script."""
        if self._attempt is Attempt:
            return await self._pool.run(job, host)
        return await self._pool.attempt(lambda worker, around: self._attempt(worker, job, host, around))


class CommandArena(Arena):
    """A pool for WebAssembly commands."""

    def __init__(self, settings: dict[str, str], attempt: type[Attempt]) -> None:
        super().__init__()
        settings = dict(settings)
        limits = COMPILE_LIMITS
        if "escape_compiling" in settings:
            cpu_ms, memory_bytes = (int(word) for word in settings.pop("escape_compiling").split())
            limits = replace(limits, cpu_ms=cpu_ms, memory_bytes=memory_bytes)
        self._pool = WasmPool(settings=settings, profile="trusted", compile_limits=limits)
        self._pool.attempt_type = attempt

    async def start(self) -> None:
        """Bring it up. Raises ZygoteFailed, WallUnavailable."""
        await self._pool.start()
        self.walls = self._pool.walls

    async def stop(self) -> None:
        """Take it down; safe twice."""
        await self._pool.stop()

    async def settled(self) -> None:
        """Wait until no command runs and a compiler is ready."""
        async with asyncio.timeout(_SETTLE_S):
            while self.busy() or not self._pool.ready:  # noqa: ASYNC110 - as above
                await asyncio.sleep(_LOOK_S)

    def busy(self) -> tuple[int, ...]:
        """Give the forks of the zygote."""
        return invariants.children(self._zygote())

    def _zygote(self) -> int:
        zygote = self._pool.zygote
        born = () if zygote is None else invariants.children(zygote.launcher_pid)
        return born[0] if born else 0

    def worker_uid(self) -> int:
        """Give the uid of its workers: they are forks of the zygote."""
        return invariants.uid_of(self._zygote())

    async def run(self, job: Job, host: Host) -> Report:
        """Compile and run one command; the neighbour's code is kept, an attack's is not."""
        try:
            return await self._pool.run(job, host)
        finally:
            if job.tenant != NEIGHBOUR:
                self._pool.compiler.forget(job)


def arena(runtime: str, settings: dict[str, str]) -> Arena:
    """Make the arena of a runtime; it is not up yet."""
    if runtime == "engine":
        return Arena()
    settings = dict(settings)
    attempt = attempt_type(settings.pop("escape_attempt", ""))
    return CommandArena(settings, attempt) if runtime == "wasm" else ScriptArena(runtime, settings, attempt)

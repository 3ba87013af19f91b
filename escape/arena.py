"""Arenas: pools of one runtime with all walls, in which attacks run."""

import asyncio
import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from lodger.engine.core.settings import load
from lodger.escape import invariants, owned_guest
from lodger.escape.case import Case
from lodger.escape.modules import write_cached
from lodger.escape.neighbours import ID as NEIGHBOUR
from lodger.sandbox.job import CallHandler, Job, Report
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool
from lodger.sandbox.runtimes import native_libraries
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.runtimes.js.artefact import Artefact
from lodger.sandbox.runtimes.settings import native_settings
from lodger.sandbox.wasm.pool import WasmPool

#: Default limits of a case: low, so that hundreds of attacks take a minute.
LIMITS = {"cpu_ms": 100, "wall_ms": 1500, "memory_bytes": 32 * MIB}
#: Limits of the compilation of a module in the suite.
COMPILE_LIMITS = Limits(cpu_ms=120, wall_ms=5000, memory_bytes=128 * MIB)
#: ``engine`` stands for attacks on the engine itself, which need no worker.
RUNTIMES = ("quickjs", "quickjs-native", "wasm", "engine")


def installed_runtimes() -> tuple[str, ...]:
    """Return the runtimes of this installation, of which ``quickjs-native`` is optional."""
    return tuple(each for each in RUNTIMES if each != "quickjs-native" or native_libraries.has_native())


_SETTLE_S = 20.0
_LOOK_S = 0.001


#: Name and source of the capability that gives scripts the suite's calls.
BRIDGE = ("cap-bridge.js", '$.provide("bridge", (context, call) => ({ call, callSync: $.callSync }));\n')


@lru_cache(maxsize=1)
def realm() -> Artefact:
    """Return the suite's realm, baked at first use. Raises RealmUnavailable."""
    sources = [*artefact.read_sources(), BRIDGE]
    return artefact.baked(sources, load().cache_dir)


@lru_cache(maxsize=1)
def native() -> dict[str, str]:
    """Return the settings of the same realm in the native engine. Raises SandboxError."""
    settings = native_settings()
    return settings | {"library": f"{settings['library']}\n{write_source(*BRIDGE)}"}


def write_source(name: str, text: str) -> Path:
    """Write a source into the cache of realms, named after its digest, and return its path."""
    content = text.encode()
    return write_cached(f"{hashlib.sha256(content).hexdigest()[:32]}-{name}", content)


def limits_of(case: Case) -> Limits:
    """Return the limits that a case must keep."""
    return Limits(**{**LIMITS, **case.limits})


def settings_for(runtime: str, case: Case | None = None) -> dict[str, str]:
    """Return the runtime settings of a case's pool; cases with equal settings share a pool."""
    if runtime == "quickjs":
        settings = realm().settings()
    elif runtime == "quickjs-native":
        settings = dict(native())
    else:
        settings = {}
    if case is not None and case.guest is not None:
        settings |= owned_guest.settings(case.guest())
    return settings


class SuitePool(Pool):
    """A pool with a zygote that loads the suite's realm, or an attacking module instead of the engine."""

    def __init__(self, runtime: str, settings: dict[str, str]) -> None:
        super().__init__(runtime=runtime, size=2, profile="trusted")
        self._loads = settings

    async def runtime_settings(self) -> dict[str, str]:
        """Return the runtime settings of the zygote."""
        return self._loads


class Arena:
    """Base class, and the arena without a pool for attacks on the engine itself.

    Attributes:
        walls: maps each wall's name to whether it is active.
    """

    def __init__(self) -> None:
        self.walls: dict[str, bool] = {}

    async def start(self) -> None:
        """Start the arena. Raises ZygoteFailed, WallUnavailable."""

    async def stop(self) -> None:
        """Stop the arena; safe to call twice."""

    async def settled(self) -> None:
        """Wait until nothing is running, so that the resources of this process can be compared."""

    def waiting(self) -> tuple[int, ...]:
        """Return the ready workers, the next one first."""
        return ()

    def worker_uids(self) -> range:
        """Return the user ids that its workers may have."""
        return range(os.geteuid(), os.geteuid() + 1)

    async def run(self, _job: Job, _host: CallHandler) -> Report:
        """Run one job and return its report."""
        return Report(Outcome.ENGINE_FAULT)


Place = TypeVar("Place", Pool, WasmPool)


class PoolArena(Arena, Generic[Place]):
    """The arena of a pool."""

    def __init__(self, pool: Place) -> None:
        super().__init__()
        self._pool: Place = pool

    async def start(self) -> None:
        """Start the arena. Raises ZygoteFailed, WallUnavailable."""
        await self._pool.start()
        self.walls = self._pool.walls

    async def stop(self) -> None:
        """Stop the arena; safe to call twice."""
        await self._pool.stop()

    async def settled(self) -> None:
        """Wait for two ready workers."""
        async with asyncio.timeout(_SETTLE_S):
            while len(self._pool.ready) < 2:  # noqa: ASYNC110 - the pool has no event for readiness
                await asyncio.sleep(_LOOK_S)

    def waiting(self) -> tuple[int, ...]:
        """Return the ready workers."""
        return self._pool.ready

    def worker_uids(self) -> range:
        """Return the user ids that its workers may have."""
        return invariants.uids_of(self._pool.ready[0], self.walls)

    async def run(self, job: Job, host: CallHandler) -> Report:
        """Run one attack and return its report."""
        return await self._pool.run(job, host)


class CommandArena(PoolArena[WasmPool]):
    """The arena of a pool for WebAssembly commands."""

    async def settled(self) -> None:
        """Wait for two ready workers and a ready compiler."""
        await super().settled()
        async with asyncio.timeout(_SETTLE_S):
            while not self._pool.compilers.ready:  # noqa: ASYNC110 - as above
                await asyncio.sleep(_LOOK_S)

    async def run(self, job: Job, host: CallHandler) -> Report:
        """Compile and run one command and return its report; only the neighbour's code stays cached."""
        try:
            return await super().run(job, host)
        finally:
            if job.tenant != NEIGHBOUR:
                self._pool.compiler.forget(job)


def arena(runtime: str, settings: dict[str, str]) -> Arena:
    """Return the arena of a runtime, not yet started."""
    if runtime == "engine":
        return Arena()
    if runtime == "wasm":
        return CommandArena(WasmPool(profile="trusted", compile_limits=COMPILE_LIMITS))
    return PoolArena(SuitePool(runtime, settings))

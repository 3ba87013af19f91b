"""Where attacks are tried: a standing pool of one runtime behind all its walls."""

import asyncio
import hashlib
import os
import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from lodger.escape import invariants, owned_guest
from lodger.escape.case import Case
from lodger.escape.neighbours import ID as NEIGHBOUR
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Host, Job, Report
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.runtimes.js.artefact import Artefact
from lodger.sandbox.runtimes.settings import native_settings
from lodger.sandbox.wasm.pool import WasmPool

#: What a case gets unless it says otherwise: low, so that hundreds of attacks take a minute.
LIMITS = {"cpu_ms": 100, "wall_ms": 1500, "memory_bytes": 32 * MIB}
#: Of one compilation of a tenant's module, in the suite: low too.
COMPILE_LIMITS = Limits(cpu_ms=120, wall_ms=5000, memory_bytes=128 * MIB)
#: ``engine`` is no runtime: no worker is needed for what it attacks.
RUNTIMES = ("quickjs", "quickjs-native", "wasm", "engine")

_SETTLE_S = 20.0
_LOOK_S = 0.001


#: File and source of the capability.
BRIDGE = ("cap-bridge.js", '$.provide("bridge", (context, call) => ({ call, callSync: $.callSync }));\n')


@lru_cache(maxsize=1)
def realm() -> Artefact:
    """Return the suite's realm, baked at first use. Raises RealmUnavailable."""
    sources = [*artefact.read_sources(), BRIDGE]
    return replace(artefact.baked(sources), metered=artefact.baked(sources, fuel=True).module)


@lru_cache(maxsize=1)
def native() -> dict[str, str]:
    """Return the settings of the same realm in the native engine. Raises SandboxError."""
    settings = native_settings()
    return settings | {"library": f"{settings['library']}\n{written(*BRIDGE)}"}


def written(name: str, text: str) -> Path:
    """Put a source beside the baked realms, under the name of its content."""
    for folder in artefact.candidates():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if artefact.is_ours(folder):
            break
    else:
        raise SandboxError("no_cache_folder", "there is no folder for the suite's realm", fix="set XDG_CACHE_HOME")
    place = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}-{name}"
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, delete=False) as fresh:
        fresh.write(text)
    Path(fresh.name).replace(place)
    return place


def promised(case: Case) -> Limits:
    """Give the limits that a case is held to."""
    return Limits(**{**LIMITS, **case.limits})


def settings_for(runtime: str, case: Case | None = None) -> dict[str, str]:
    """Return what the runtime of a case's pool loads; cases of equal settings share a pool."""
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
    """A pool whose zygote loads the suite's realm, or a module in the engine's place."""

    def __init__(self, runtime: str, settings: dict[str, str]) -> None:
        super().__init__(runtime=runtime, size=2, profile="trusted", metered=bool(settings.get("fuel_artefact")))
        self._loads = settings

    async def runtime_settings(self) -> dict[str, str]:
        """Return what the runtime loads."""
        return self._loads


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

    def worker_uids(self) -> range:
        """Return the uids that its workers may have."""
        return range(os.geteuid(), os.geteuid() + 1)

    async def run(self, _job: Job, _host: Host) -> Report:
        """Run one job."""
        return Report(Outcome.ENGINE_FAULT)


class ScriptArena(Arena):
    """A pool for scripts."""

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

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

    def worker_uids(self) -> range:
        """Return the uids that its workers may have."""
        return invariants.uids_of(self._pool.ready[0], self.walls)

    async def run(self, job: Job, host: Host) -> Report:
        """Run one script."""
        return await self._pool.run(job, host)


class CommandArena(Arena):
    """A pool for WebAssembly commands."""

    def __init__(self, pool: WasmPool) -> None:
        super().__init__()
        self._pool = pool

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

    def worker_uids(self) -> range:
        """Return the uids that its workers may have: they are forks of the zygote."""
        return invariants.uids_of(self._zygote(), self.walls)

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
    if runtime == "wasm":
        return CommandArena(WasmPool(profile="trusted", compile_limits=COMPILE_LIMITS))
    return ScriptArena(SuitePool(runtime, settings))

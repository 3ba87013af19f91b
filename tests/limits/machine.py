"""A started pool with its own event loop that runs one program per call, for any runtime."""

import asyncio

from tests.escape.probing import Echo

from lodger.sandbox import Bundle, Job, Limits, Pool, Report

MIB = 1 << 20
RUNTIMES = ("quickjs", "quickjs-native", "wasm")
#: Memory of an attempt above its limit that is tolerated, as counted by the kernel.
ABOVE = {"quickjs": 40 * MIB, "quickjs-native": 16 * MIB, "wasm": 40 * MIB}


class Machine:
    """Runner of programs on one runtime: scripts as text, modules as bytes."""

    def __init__(self, runtime: str) -> None:
        self.name = runtime
        self.above_bytes = ABOVE[runtime]
        self.runner = asyncio.Runner()
        self.pool = Pool(runtime="quickjs" if runtime == "wasm" else runtime, size=2)
        self.runner.run(self.pool.start())

    def __call__(self, code: str | bytes, host: Echo | None = None, context: str = "{}", **limits: int) -> Report:
        bundle = Bundle({"main.js": code}, context) if isinstance(code, str) else Bundle({}, context, wasm=code)
        time = {"wall_ms": 60_000} | limits  # a busy machine is slow
        job = Job(bundle, Limits(**time), now_us=1, tenant="acme")
        return self.runner.run(self.pool.run(job, host or Echo()))

    def worker(self, ready: int = 1) -> int:
        """Return the process id of the worker for the next job, once so many are ready."""
        return self.runner.run(self._worker(ready))

    async def _worker(self, ready: int) -> int:
        pool = await self.pool.for_modules() if self.name == "wasm" else self.pool
        async with asyncio.timeout(120):
            while len(pool.ready) < ready:  # noqa: ASYNC110 - the pool has no event for it
                await asyncio.sleep(0)
        return pool.ready[0]

    def close(self) -> None:
        self.runner.run(self.pool.stop())
        self.runner.close()

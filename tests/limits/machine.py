"""A started pool on a loop of its own: one call, one script, one report."""

import asyncio

from tests.escape.probing import Echo

from lodger.sandbox import Bundle, Job, Limits, Pool, Report

MIB = 1 << 20
#: What an attempt may hold above its memory limit, by the kernel's figure.
ABOVE = {"quickjs": 40 * MIB, "quickjs-native": 16 * MIB}


class Machine:
    """Scripts in the walls of one runtime."""

    def __init__(self, runtime: str, *, metered: bool = False) -> None:
        self.name = runtime
        self.above_bytes = ABOVE[runtime]
        self.runner = asyncio.Runner()
        self.pool = Pool(runtime=runtime, size=2, metered=metered)
        self.runner.run(self.pool.start())

    def __call__(
        self, code: str, host: Echo | None = None, context: str = "{}", fuel: int = 0, **limits: int
    ) -> Report:
        job = Job(Bundle({"main.js": code}, context), Limits(**limits), fuel=fuel, now_us=1)
        return self.runner.run(self.pool.run(job, host or Echo()))

    def worker(self) -> int:
        """Give the pid of the worker that takes the next job."""
        return self.runner.run(self._worker())

    async def _worker(self) -> int:
        async with asyncio.timeout(30):
            while not self.pool.ready:
                await asyncio.sleep(0)
        return self.pool.ready[0]

    def close(self) -> None:
        self.runner.run(self.pool.stop())
        self.runner.close()

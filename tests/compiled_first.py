"""The switch LODGER_COMPILED: every script of a test runs from the image of its version, so that suites can be run both ways."""

from typing import Any

from lodger.sandbox.job import CallHandler, Job, Report
from lodger.sandbox.pool import Pool
from lodger.sandbox.wasm.code_cache import CodeCache


def compile_first() -> None:
    """Make every pool of this process compile a script before it runs it; a pool without a cache keeps no image after the run."""
    run, init = Pool.run, Pool.__init__
    brief: dict[int, CodeCache] = {}

    def new_init(self: Pool, **more: Any) -> None:
        if not more.get("code_cache"):
            more["code_cache"] = brief[id(self)] = CodeCache()
        init(self, **more)

    async def new_run(self: Pool, job: Job, host: CallHandler) -> Report:
        await self.compile(job)
        try:
            return await run(self, job, host)
        finally:
            if kept := brief.get(id(self)):  # those who compare the descriptors before and after must not see it
                kept.close()

    Pool.__init__, Pool.run = new_init, new_run  # type: ignore[method-assign]  # the switch, for the whole process

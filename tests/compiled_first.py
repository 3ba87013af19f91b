"""The switch LODGER_COMPILED: every script of a test runs from the image of its version, so that suites can be run both ways."""

from typing import Any

from lodger.sandbox.job import CallHandler, Job, Report
from lodger.sandbox.pool import Pool
from lodger.sandbox.wasm.code_cache import CodeCache


def compile_first() -> None:
    """Make every pool of this process compile a script before it runs it."""
    run, init = Pool.run, Pool.__init__

    def new_init(self: Pool, **more: Any) -> None:
        init(self, **{**more, "code_cache": more.get("code_cache") or CodeCache()})

    async def new_run(self: Pool, job: Job, host: CallHandler) -> Report:
        await self.compile(job)
        return await run(self, job, host)

    Pool.__init__, Pool.run = new_init, new_run  # type: ignore[method-assign]  # the switch, for the whole process

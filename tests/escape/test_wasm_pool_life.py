"""Life of the pool for WebAssembly: repeated start and stop, cancellation, end of its zygote, many attempts at once, no process left."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

import pytest
from tests.escape.commands import HELLO, LOOP, command, data
from tests.escape.pool_processes import Signals, children_of, has_ended, wait_gone
from tests.escape.probing import Echo

from lodger.escape.runner import started
from lodger.sandbox import Bundle, Job, Limits, Outcome
from lodger.sandbox.wasm.pool import WasmPool

SAYS_AND_LOOPS = command(
    "(call $out (i32.const 2) (i32.const 1024) (i32.const 3)) (loop $l (br $l))", extra=data(1024, "hi\\n")
)
LIMITS = Limits(cpu_ms=30_000, wall_ms=60_000)


def job(module: bytes, given: str = "1", tenant: str = "acme") -> Job:
    return Job(Bundle({}, given, wasm=module), LIMITS, tenant=tenant)


def living(pool: WasmPool) -> tuple[int, int]:
    """Return the process ids of launcher and zygote."""
    assert pool.zygote is not None
    launcher = pool.zygote.launcher_pid
    return launcher, children_of(launcher)[0]


def with_pool(go: Callable[[WasmPool], Awaitable[None]]) -> None:
    async def main() -> None:
        async with started(WasmPool()) as pool:
            await go(pool)

    asyncio.run(main())


def test_many_at_once_each_get_their_own() -> None:
    async def go(pool: WasmPool) -> None:
        jobs = [job(HELLO, str(number), f"tenant {number % 3}") for number in range(30)]
        reports = await asyncio.gather(*(pool.run(each, Echo()) for each in jobs))
        assert [report.result for report in reports] == [str(number) for number in range(30)]
        assert pool.compiler.compiled == 3

    with_pool(go)


@pytest.mark.parametrize("turns", [0, 2, 8])
def test_cancelling_at_any_moment_leaves_nothing(turns: int) -> None:
    async def go(pool: WasmPool) -> None:
        for module in (HELLO, LOOP):
            running = asyncio.create_task(pool.run(job(module), Echo()))
            for _ in range(turns):
                await asyncio.sleep(0.001)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert (await pool.run(job(HELLO), Echo())).outcome is Outcome.OK

    with_pool(go)


def test_when_the_zygote_dies_the_next_attempt_starts_another() -> None:
    async def go(pool: WasmPool) -> None:
        host = Signals()
        running = asyncio.create_task(pool.run(job(SAYS_AND_LOOPS), host))
        await host.reached.wait()
        launcher, zygote = living(pool)
        (worker,) = children_of(zygote)
        os.kill(zygote, signal.SIGKILL)
        assert (await running).outcome is Outcome.WORKER_LOST
        wait_gone(worker, zygote)
        reports = await asyncio.gather(*(pool.run(job(HELLO), Echo()) for _ in range(3)))
        assert [report.outcome for report in reports] == [Outcome.OK] * 3
        assert living(pool) != (launcher, zygote)
        assert has_ended(launcher)

    with_pool(go)

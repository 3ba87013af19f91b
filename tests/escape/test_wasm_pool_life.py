"""Life of the pool for WebAssembly: repeated start and stop, cancellation, end of its zygote, many attempts at once, no process left."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.escape.commands import HELLO, LADDER_OF_IFS, LOOP, command, data
from tests.escape.probing import Echo
from tests.escape.test_pool_life import Signals, children_of, gone, wait_gone

from lodger.sandbox import Bundle, Job, Limits, Outcome, Report
from lodger.sandbox.errors import ZygoteFailed
from lodger.sandbox.wasm.pool import WasmPool
from lodger.sandbox.workers.launcher import WorkerEnd, Zygote

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
        pool = WasmPool()
        await pool.start()
        try:
            await go(pool)
        finally:
            await pool.stop()

    asyncio.run(main())


def test_start_and_stop_twice() -> None:
    async def main() -> None:
        pool = WasmPool()
        await pool.stop()
        await asyncio.gather(pool.start(), pool.start())
        pids = living(pool)
        await asyncio.gather(pool.stop(), pool.stop())
        assert all(gone(pid) for pid in pids)
        with pytest.raises(ZygoteFailed, match="not started"):
            await pool.run(job(HELLO), Echo())
        await pool.start()
        assert (await pool.run(job(HELLO), Echo())).result == "1"
        await pool.stop()

    asyncio.run(main())


def test_many_at_once_each_get_their_own() -> None:
    async def go(pool: WasmPool) -> None:
        jobs = [job(HELLO, str(number), f"tenant {number % 3}") for number in range(30)]
        reports = await asyncio.gather(*(pool.run(each, Echo()) for each in jobs))
        assert [report.result for report in reports] == [str(number) for number in range(30)]
        assert pool.compiler.compiled == 3

    with_pool(go)


def test_nothing_is_left_after_an_attempt() -> None:
    async def go(pool: WasmPool) -> None:
        assert (await pool.run(job(HELLO), Echo())).outcome is Outcome.OK
        assert children_of(living(pool)[1]) == []

    with_pool(go)


def test_cancelling_kills_the_worker() -> None:
    async def go(pool: WasmPool) -> None:
        host = Signals()
        running = asyncio.create_task(pool.run(job(SAYS_AND_LOOPS), host))
        await host.reached.wait()
        (worker,) = children_of(living(pool)[1])
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        wait_gone(worker)
        assert (await pool.run(job(HELLO), Echo())).outcome is Outcome.OK

    with_pool(go)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 20])
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


def test_cancelling_at_the_moment_a_worker_arrives_leaves_nothing() -> None:
    class CancelledZygote(Zygote):
        def __init__(self, on_worker: Callable[[WorkerEnd], None], *others: Any) -> None:
            def arrive(worker: WorkerEnd) -> None:
                arrived.append(worker)
                on_worker(worker)
                running.cancel()

            super().__init__(arrive, *others)

    class CancelledPool(WasmPool):
        zygote_type = CancelledZygote

    async def main() -> None:
        nonlocal running
        pool = CancelledPool()
        await pool.start()
        running = asyncio.create_task(pool.run(job(HELLO), Echo()))
        with pytest.raises(asyncio.CancelledError):
            await running
        (worker,) = arrived
        assert worker.pidfd == -1, "closed"
        await pool.stop()

    arrived: list[WorkerEnd] = []
    running: asyncio.Task[Report]
    asyncio.run(main())


def test_a_killed_worker_is_not_the_tenants_fault() -> None:
    async def go(pool: WasmPool) -> None:
        host = Signals()
        running = asyncio.create_task(pool.run(job(SAYS_AND_LOOPS), host))
        await host.reached.wait()
        (worker,) = children_of(living(pool)[1])
        os.kill(worker, signal.SIGKILL)
        assert (await running).outcome is Outcome.WORKER_LOST

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
        assert gone(launcher)

    with_pool(go)


@pytest.mark.parametrize("module", [SAYS_AND_LOOPS, LADDER_OF_IFS], ids=["running", "compiling"])
def test_stopping_ends_what_runs(module: bytes) -> None:
    async def main() -> Report:
        pool = WasmPool()
        await pool.start()
        host = Signals()
        running = asyncio.create_task(pool.run(job(module), host))
        if module is SAYS_AND_LOOPS:
            await host.reached.wait()
        else:
            await asyncio.sleep(0.1)
        await pool.stop()
        return await running

    assert asyncio.run(main()).outcome is Outcome.WORKER_LOST

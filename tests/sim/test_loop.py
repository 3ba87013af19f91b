"""The virtual event loop: asyncio's interface, simulated threads, suspended and killed processes."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.sim.simulator.loop import Deadlock, Process, VirtualLoop


def loop_of(carry: Any = None) -> VirtualLoop:
    return VirtualLoop() if carry is None else VirtualLoop(carry)  # type: ignore[abstract]  # as in the world


def test_nothing_waits() -> None:
    loop, reported = loop_of(), []

    async def work() -> None:
        await asyncio.sleep(3600)
        reported.append(loop.time())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        reported.append(loop.time())

    loop.spawn(Process("p"), work())
    loop.run(10_000)
    assert reported == [3600, 3605]
    assert loop.time() == 10_000
    assert not loop.faults


def test_a_world_in_which_nothing_can_happen_any_more_says_so() -> None:
    loop = loop_of()
    loop.spawn(Process("p"), asyncio.Event().wait())
    with pytest.raises(Deadlock):
        loop.run(float("inf"))


def slowly(_process: Process | None, work: Callable[[], Any]) -> tuple[Callable[[], Any], float, float]:
    return work, 1.0, 1.0


def test_jobs_of_one_executor_are_done_one_after_the_other_and_inline() -> None:
    loop, done = loop_of(slowly), []
    one, two = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    async def work(executor: ThreadPoolExecutor, name: str) -> None:
        await loop.run_in_executor(executor, lambda: done.append((name, loop.time())))
        done.append((f"{name} is told", loop.time()))

    process = Process("p")
    for executor, name in ((one, "a"), (one, "b"), (two, "c")):
        loop.spawn(process, work(executor, name))
    loop.run(100)
    assert done == [("a", 1), ("c", 1), ("a is told", 2), ("c is told", 2), ("b", 3), ("b is told", 4)]


def test_a_job_that_nobody_waits_for_is_dropped_before_it_begins_and_done_after() -> None:
    loop, done = loop_of(slowly), []

    async def work(patience_s: float) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(patience_s):
                await loop.run_in_executor(None, lambda: done.append(patience_s))

    loop.spawn(Process("p"), work(0.5))
    loop.run(50)
    loop.spawn(Process("q"), work(1.5))
    loop.run(100)
    assert done == [1.5]


def test_a_frozen_process_goes_on_where_it_stood_and_a_dead_one_never() -> None:
    loop, reported = loop_of(), []

    async def ticking(name: str) -> None:
        try:
            while True:
                await asyncio.sleep(1)
                reported.append((name, loop.time()))
        finally:
            reported.append((f"{name} ends", loop.time()))
            await loop.run_in_executor(None, lambda: reported.append(("written after death", loop.time())))

    one, two = Process("one"), Process("two")
    loop.spawn(one, ticking("one"))
    loop.spawn(two, ticking("two"))
    loop.run(1)
    one.frozen = True
    loop.run(5.5)
    assert [at for name, at in reported if name == "one"] == [1]
    assert [at for name, at in reported if name == "two"] == [1, 2, 3, 4, 5]
    loop.thaw(one)
    loop.run(6)
    assert [at for name, at in reported if name == "one"] == [1, 5.5]
    loop.kill(two)
    loop.run(20)
    assert max(at for name, at in reported if name == "two") == 6
    assert ("two ends", 6) in reported, "its coroutines are unwound"
    assert not [each for each in reported if each[0] == "written after death"]
    loop.kill(one)


def test_what_nobody_catches_is_kept() -> None:
    loop = loop_of()
    loop.call_soon(lambda: 1 / 0)
    loop.run(1)
    assert isinstance(loop.faults[0]["exception"], ZeroDivisionError)

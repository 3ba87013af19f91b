"""Life of the pool: repeated start and stop, cancellation, many workers, end of worker, zygote and engine, and no process left."""

import asyncio
import contextlib
import os
import resource
import select
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.escape.matrix.pools import WeakPool, WeakZygote
from tests.escape.pool_processes import Signals, children_of, has_ended, wait_gone, zygote_pid
from tests.escape.probing import PROBE, Echo, probe_job, probe_pool
from tests.escape.standing import standing

from lodger.escape.runner import started
from lodger.sandbox import Outcome
from lodger.sandbox.errors import ZygoteFailed
from lodger.sandbox.job import Reply
from lodger.sandbox.workers.launcher import WorkerEnd

HOLD = 'ask(1, "a", "[]"); hear(); done("1")'


async def test_start_and_stop_twice() -> None:
    pool = probe_pool()
    await pool.stop()
    await asyncio.gather(pool.start(), pool.start())
    await pool.start()
    zygote = zygote_pid(pool)
    workers = pool.ready
    assert workers
    await asyncio.gather(pool.stop(), pool.stop())
    await pool.stop()
    assert all(has_ended(pid) for pid in (zygote, *workers))
    await pool.start()
    assert (await pool.run(probe_job('done("2")'), Echo())).result == "2"
    await pool.stop()


def test_run_without_start_is_said() -> None:
    with pytest.raises(ZygoteFailed, match="not started"):
        asyncio.run(probe_pool().run(probe_job("1"), Echo()))


@pytest.mark.parametrize("code", [HOLD, 'log("x")\nwhile True: pass'])
async def test_cancel_kills_the_worker(code: str) -> None:
    async with started(probe_pool(size=1)) as pool:
        (pid,) = pool.ready
        host = Signals()
        running = asyncio.create_task(pool.run(probe_job(code), host))
        await host.reached.wait()
        assert not has_ended(pid)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        wait_gone(pid)
        assert (await pool.run(probe_job('done("1")'), Echo())).outcome is Outcome.OK


async def test_cancel_while_waiting_for_a_worker_loses_none() -> None:
    async with started(probe_pool(size=1)) as pool:
        tasks = [asyncio.create_task(pool.run(probe_job('done("1")'), Echo())) for _ in range(6)]
        await asyncio.sleep(0)
        for task in tasks[1::2]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(result, asyncio.CancelledError) for result in results] == [False, True] * 3


async def test_a_worker_that_arrives_as_the_wait_for_it_ends_is_kept() -> None:
    class LateZygote(WeakZygote):
        def __init__(self, on_worker: Callable[[WorkerEnd], None], *others: Any) -> None:
            def arrive(worker: WorkerEnd) -> None:
                on_worker(worker)
                arrived.append(worker)
                if len(arrived) == 2:  # both its message and the end of the wait are in the loop's next turn
                    assert select.select([worker.socket], [], [], 60)[0]
                    loop.time = lambda: now() + 31  # type: ignore[method-assign]  # the wait is over

            loop = asyncio.get_running_loop()
            now = loop.time
            super().__init__(arrive, *others)

    arrived: list[WorkerEnd] = []
    pool = probe_pool(size=1, cores=1)
    pool.zygote_type = LateZygote
    await pool.start()
    host = Signals()
    runs = [asyncio.create_task(pool.run(probe_job(HOLD, wall_ms=120_000), each)) for each in (host, Echo())]
    with pytest.raises(ZygoteFailed, match="no worker became ready"):
        await runs[1]
    assert pool.ready == (arrived[1].pid,)
    host.let_go.set()
    assert (await runs[0]).outcome is Outcome.OK
    await pool.stop()
    assert arrived[1].pidfd == -1, "closed"


async def test_killed_worker_is_lost_not_blamed() -> None:
    async with started(probe_pool(size=1)) as pool:
        (pid,) = pool.ready
        host = Signals()
        running = asyncio.create_task(pool.run(probe_job(HOLD), host))
        await host.reached.wait()
        os.kill(pid, signal.SIGKILL)
        report = await running
        assert report.outcome is Outcome.WORKER_LOST
        assert report.error is not None


@pytest.mark.parametrize("without", ["", "namespaces"])
async def test_zygote_dies_in_the_middle(without: str) -> None:
    async with started(probe_pool(without.split(), size=2)) as pool:
        oldest = pool.ready[0]
        host = Signals()
        running = asyncio.create_task(pool.run(probe_job(HOLD), host))
        await host.reached.wait()
        zygote = zygote_pid(pool)
        others = pool.ready
        os.kill(zygote, signal.SIGKILL)
        report = await running
        assert report.outcome is Outcome.WORKER_LOST
        wait_gone(zygote, oldest, *others)
        assert (await pool.run(probe_job('done("3")'), Echo())).result == "3", "a new zygote serves"
        assert zygote_pid(pool) != zygote


async def test_stop_in_the_middle_of_an_attempt() -> None:
    async with started(probe_pool(size=1)) as pool:
        (pid,) = pool.ready
        host = Signals()
        running = asyncio.create_task(pool.run(probe_job(HOLD), host))
        await host.reached.wait()
    assert (await running).outcome is Outcome.WORKER_LOST
    assert has_ended(pid)


@pytest.mark.parametrize("user", ["root", "ordinary"])
@pytest.mark.parametrize("without", ["", "namespaces", "death_signal"])
def test_killed_engine_leaves_nothing(user: str, without: str) -> None:
    with standing(user, without, 'log("x")\nwhile True: pass') as (said, process):
        process.kill()
        process.wait(120)
        wait_gone(said["launcher"], said["zygote"], said["armed"], said["ready"])


@pytest.mark.root
def test_death_signal_is_what_ends_a_spinning_worker_without_pid_namespace() -> None:
    if os.geteuid():
        pytest.skip("NOT TESTED as root: needs root (run as root)")
    with standing("root", "namespaces death_signal", 'log("x")\nwhile True: pass') as (said, process):
        process.kill()
        process.wait(120)
        wait_gone(said["launcher"], said["zygote"])
        assert not has_ended(said["armed"]), "nobody told it"
        os.kill(said["armed"], signal.SIGKILL)
        wait_gone(said["armed"])


def test_failing_runtime_tells_the_operator_why() -> None:
    async def go(**settings: str) -> None:
        await probe_pool(settings=settings).start()

    with pytest.raises(ZygoteFailed) as refused:
        asyncio.run(go(fail_prepare="no such library"))
    assert "no such library" in refused.value.why
    with pytest.raises(ZygoteFailed) as refused:
        asyncio.run(go(fail_fresh="no realm"))
    assert "no realm" in refused.value.why
    with pytest.raises(ZygoteFailed):
        asyncio.run(go(runtime_path="/nonexistent"))


async def test_sources_and_inputs_are_refused_before_any_worker() -> None:
    async with started(probe_pool(size=1)) as pool:
        ready = pool.ready
        large = await pool.run(probe_job("x" * 300_000), Echo())
        assert large.outcome is Outcome.SOURCE_TOO_LARGE
        for context in ("{", '"' + "x" * 300_000 + '"', "[" * 65 + "]" * 65, "NaN", '"\ud800"'):
            refused = await pool.run(probe_job("1", context), Echo())
            assert refused.outcome is Outcome.BAD_REQUEST, context[:20]
        assert (await pool.run(probe_job("'\ud800'"), Echo())).outcome is Outcome.BAD_REQUEST
        assert pool.ready == ready


async def test_no_more_warm_up_than_cores_and_none_until_half_are_taken() -> None:
    pool = probe_pool(size=12, cores=2)
    maximum = 0
    await pool.start()
    while len(pool.ready) < 12:
        maximum = max(maximum, len(children_of(zygote_pid(pool))) - len(pool.ready))
        await asyncio.sleep(0.001)
    assert maximum <= 2 + 1  # one more may have become ready since
    first = pool.ready
    for taken in range(1, 6):
        await pool.run(probe_job("done('1')"), Echo())
        assert pool.ready == first[taken:], "forks in a row cost less than one for each attempt"
    await pool.run(probe_job("done('1')"), Echo())
    async with asyncio.timeout(120):
        while len(pool.ready) < 12:  # noqa: ASYNC110 - the pool has no event for it
            await asyncio.sleep(0.01)
    await pool.stop()


def owner(pid: int) -> int:
    """Return the user id of a process."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("Uid:")[2].split()[0])


async def test_two_pools_of_one_engine_have_two_uids() -> None:
    if os.geteuid():
        pytest.skip("NOT TESTED as root: needs an engine that is root (run as root)")

    pools = [probe_pool(size=1), probe_pool(size=1)]
    for pool in pools:
        await pool.start()
    owners = {owner(pool.ready[0]) for pool in pools}
    for pool in pools:
        await pool.stop()
    assert len(owners - {0}) == 2


@pytest.mark.parametrize("turns", [1, 10])
async def test_a_start_that_is_cancelled_again_and_again_leaves_nothing(turns: int) -> None:
    """Repeated cancellation must still wait for the zygote; the leak fixture checks it."""

    pool = probe_pool()
    starting = asyncio.create_task(pool.start())
    for _ in range(turns):
        await asyncio.sleep(0.001)
    for _ in range(20):
        starting.cancel()
        await asyncio.sleep(0)
    await asyncio.gather(starting, return_exceptions=True)
    await pool.stop()


async def test_a_waiting_worker_that_dies_is_replaced_before_anybody_needs_it() -> None:
    async with started(probe_pool(size=2)) as pool:
        async with asyncio.timeout(120):
            while len(pool.ready) < 2:  # noqa: ASYNC110 - the pool has no event for it
                await asyncio.sleep(0.01)
            dead = pool.ready[0]
            os.kill(dead, signal.SIGKILL)
            while dead in pool.ready or len(pool.ready) < 2:  # noqa: ASYNC110 - the same
                await asyncio.sleep(0.01)
        assert (await pool.run(probe_job("done('1')"), Echo())).result == "1"


async def test_a_zygote_is_renewed_while_attempts_go_on() -> None:
    """Workers of one zygote share an address layout: after some number it is replaced, and ends with its last worker."""

    class Renewing(WeakPool):
        renew_after = 6

    class Held(Echo):
        release = asyncio.Event()

        async def call(self, name: str, arguments: str) -> Reply:
            await self.release.wait()
            return await super().call(name, arguments)

    async with started(Renewing({"runtime_path": PROBE}, size=2, profile="trusted")) as pool:
        assert pool.zygote is not None
        launchers = [pool.zygote.launcher_pid]
        holding = asyncio.create_task(pool.run(probe_job("ask(1, 'echo', '1'); hear(); done('1')"), Held()))
        outcomes = set()
        while len(set(launchers)) < 3:
            outcomes.add((await pool.run(probe_job("done('1')"), Echo())).outcome)
            launchers.append(pool.zygote.launcher_pid)
        held = has_ended(launchers[0])
        Held.release.set()
        outcomes.add((await holding).outcome)
        live = pool.zygote.launcher_pid
        async with asyncio.timeout(60):
            while not has_ended(launchers[0]):
                await pool.run(probe_job("done('1')"), Echo())
    assert outcomes == {Outcome.OK}
    assert not held, "the first zygote ended under a worker that was still running"
    wait_gone(*set(launchers), live)


MANY = 72  # more than 64, which RLIMIT_SIGPENDING once was


async def test_workers_that_share_a_uid_do_not_use_up_each_others_timers() -> None:
    async with started(probe_pool(without=("uid", "namespaces"), size=MANY)) as pool, asyncio.timeout(60):
        while len(pool.ready) < MANY:  # noqa: ASYNC110 - the pool announces no readiness
            await asyncio.sleep(0.01)


async def test_a_zygote_that_is_lost_at_the_asking_is_asked_for_nothing_more() -> None:
    """Requests to a lost zygote must not count, or the next zygote would get none."""

    async with started(probe_pool(size=2, cores=4)) as pool:
        zygote, others = zygote_pid(pool), pool.ready
        os.kill(zygote, signal.SIGKILL)
        wait_gone(zygote, *others)  # the event loop has not run: the pool does not know yet
        # Each takes a dead worker and requests another one from the dead zygote.
        reports = await asyncio.gather(*(pool.run(probe_job('done("3")'), Echo()) for _ in range(4)))
        assert {report.outcome for report in reports} <= {"ok", "worker_lost"}
        assert (await pool.run(probe_job('done("3")'), Echo())).result == "3"


@pytest.mark.parametrize("room", [0, 1])
async def test_no_descriptor_left_for_the_next_worker_costs_nobody_who_runs(room: int) -> None:
    """Many fetches may use all descriptors: further workers come later, and running attempts continue."""

    async with started(probe_pool(size=1, cores=1)) as pool:
        signals, refused = Signals(), asyncio.Event()
        running = asyncio.create_task(pool.run(probe_job('ask(1, "hold", "[]"); hear(); done("7")'), signals))
        await signals.reached.wait()
        zygote = pool.zygote
        assert zygote is not None
        for name in ("_on_refused", "_on_lost"):
            heard = getattr(zygote, name)
            setattr(zygote, name, lambda heard=heard: (heard(), refused.set()))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = []
        try:
            while not pool.ready:  # noqa: ASYNC110 - the pool has no event for readiness
                await asyncio.sleep(0.005)
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 200), hard))
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.dup(0))
            for _ in range(room):
                os.close(taken.pop())
            # Its worker is to be replaced; while it waits, it keeps its own descriptors.
            second = asyncio.create_task(pool.run(probe_job('ask(1, "hold", "[]"); hear(); done("2")'), signals))
            async with asyncio.timeout(120):
                await refused.wait()
        finally:
            for number in taken:
                os.close(number)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert pool.zygote is zygote, "the same as before"
        signals.let_go.set()
        assert (await running).result == "7"
        assert (await second).result == "2"
        assert (await pool.run(probe_job('done("3")'), Echo())).result == "3", "there is room again"
        async with asyncio.timeout(120):
            while len(pool.ready) < 1 or len(children_of(zygote_pid(pool))) > 1:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.005)  # the worker with the closed socket has ended

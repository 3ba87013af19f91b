"""A lost zygote: the pool discards its requests to it, and a lack of descriptors does not end it."""

import asyncio
import contextlib
import os
import resource
import signal

import pytest
from tests.escape.pool_processes import Signals, children_of, wait_gone, zygote_pid
from tests.escape.probing import Echo, probe_job, probe_pool

from lodger.escape.runner import started


def test_a_zygote_that_is_lost_at_the_asking_is_asked_for_nothing_more() -> None:
    """Requests to a lost zygote must not count, or the next zygote would get none."""

    async def go() -> None:
        async with started(probe_pool(size=2, cores=4)) as pool:
            zygote, others = zygote_pid(pool), pool.ready
            os.kill(zygote, signal.SIGKILL)
            wait_gone(zygote, *others)  # the event loop has not run: the pool does not know yet
            # Each takes a dead worker and requests another one from the dead zygote.
            reports = await asyncio.gather(*(pool.run(probe_job('done("3")'), Echo()) for _ in range(4)))
            assert {report.outcome for report in reports} <= {"ok", "worker_lost"}
            assert (await pool.run(probe_job('done("3")'), Echo())).result == "3"

    asyncio.run(go())


@pytest.mark.parametrize("room", [0, 1])
def test_no_descriptor_left_for_the_next_worker_costs_nobody_who_runs(room: int) -> None:
    """Many fetches may use all descriptors: further workers come later, and running attempts continue."""

    async def go() -> None:
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

    asyncio.run(go())

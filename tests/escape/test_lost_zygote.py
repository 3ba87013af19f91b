"""What a pool counted on from a zygote is forgotten with it."""

import asyncio
import os
import signal

from tests.escape.probing import Echo, probe_job, probe_pool
from tests.escape.test_pool_life import wait_gone, zygote_pid


def test_a_zygote_that_is_lost_at_the_asking_is_asked_for_nothing_more() -> None:
    """Workers that nobody will bring must not be waited for: the next zygote would never be asked."""

    async def go() -> None:
        pool = probe_pool(size=2, cores=4)
        await pool.start()
        zygote, others = zygote_pid(pool), pool.ready
        os.kill(zygote, signal.SIGKILL)
        wait_gone(zygote, *others)  # the loop has not turned: the pool does not know yet
        pool._warming[pool._ready.popleft()] = asyncio.get_running_loop().call_later(60, lambda: None)
        pool._refill()
        assert pool._asked == 0
        assert (await pool.run(probe_job('done("3")'), Echo())).result == "3"
        await pool.stop()

    asyncio.run(go())

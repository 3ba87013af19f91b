"""More workers than a small per-user limit allows: limits that count all processes of a uid must not be low."""

import asyncio

from tests.escape.probing import probe_pool

MANY = 72  # more than 64, which RLIMIT_SIGPENDING once was


def test_workers_that_share_a_uid_do_not_use_up_each_others_timers() -> None:
    async def go() -> int:
        pool = probe_pool(without=("uid", "namespaces"), size=MANY)
        await pool.start()
        try:
            async with asyncio.timeout(60):
                while len(pool.ready) < MANY:  # noqa: ASYNC110 - the pool announces no readiness
                    await asyncio.sleep(0.01)
        except TimeoutError:
            pass
        ready = len(pool.ready)
        await pool.stop()
        return ready

    assert asyncio.run(go()) == MANY

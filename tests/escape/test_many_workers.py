"""More workers than a small per-user limit allows: limits that count all processes of a uid must not be low."""

import asyncio

from tests.escape.probing import probe_pool

from lodger.escape.runner import started

MANY = 72  # more than 64, which RLIMIT_SIGPENDING once was


def test_workers_that_share_a_uid_do_not_use_up_each_others_timers() -> None:
    async def go() -> None:
        async with started(probe_pool(without=("uid", "namespaces"), size=MANY)) as pool, asyncio.timeout(60):
            while len(pool.ready) < MANY:  # noqa: ASYNC110 - the pool announces no readiness
                await asyncio.sleep(0.01)

    asyncio.run(go())

"""Rate limits and shares of threads: refusals, order, and bounded memory."""

import asyncio

import pytest

from lodger.engine.core.token_buckets import KEPT
from lodger.engine.server.problems import Refused
from lodger.engine.server.rate_limits import RateLimit, Threads

CROWD = 200


def neighbour_after(threads: Threads) -> int:
    """Return how many requests of a crowd that came before are done when the neighbour's one request is."""
    done: list[str] = []

    async def one(key: str) -> None:
        async with threads.slot(key):
            await asyncio.sleep(0)
            done.append(key)

    async def scene() -> None:
        crowd = [asyncio.create_task(one("crowd")) for _ in range(CROWD)]
        await asyncio.sleep(0)  # all of them wait
        await one("neighbour")
        await asyncio.gather(*crowd)

    asyncio.run(scene())
    assert done.count("crowd") == CROWD
    return done.index("neighbour")


def test_a_request_waits_for_no_more_than_a_share_of_a_crowd() -> None:
    assert neighbour_after(Threads(4, 2, max_waiting=None)) <= 4
    assert neighbour_after(Threads(4, CROWD, max_waiting=None)) >= CROWD // 2, "without shares it waits for the crowd"


async def test_a_full_queue_refuses_its_own_key_only() -> None:
    threads, over = Threads(2, 1, max_waiting=3), asyncio.Event()

    async def one() -> None:
        async with threads.slot("crowd"):
            await over.wait()

    crowd = [asyncio.create_task(one()) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(Refused) as refused:
        async with threads.slot("crowd"):
            pass
    assert (refused.value.status, refused.value.code) == (429, "too_many_at_once")
    assert await threads.run("neighbour", lambda: 7) == 7
    over.set()
    await asyncio.gather(*crowd)
    assert await threads.run("crowd", lambda: 8) == 8, "there is room again"


async def test_a_request_that_goes_away_gives_its_place_back() -> None:
    threads, over = Threads(1, 1, max_waiting=2), asyncio.Event()

    async def one() -> None:
        async with threads.slot("a"):
            await over.wait()

    waiting = [asyncio.create_task(one()) for _ in range(3)]
    await asyncio.sleep(0)
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert await asyncio.wait_for(threads.run("a", lambda: 1), 60) == 1


def test_a_rate_counts_each_key_and_remembers_a_bounded_number() -> None:
    limit = RateLimit(2)
    assert [limit.hit("x"), limit.hit("x")] == [0.0, 0.0]
    assert 1 <= limit.hit("x") <= 60
    assert limit.hit("y") == 0.0
    for number in range(KEPT):
        limit.hit(str(number))
    assert limit.hit("x") == 0.0, "the key that was not used for longest is forgotten"

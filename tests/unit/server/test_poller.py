"""One reader for all streams of single actions: only streams with changes are woken, and a fault ends all of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lodger.engine.core.errors import Unavailable
from lodger.engine.service import live_changes
from lodger.engine.service.live_changes import Poller

KEY = ("acme", "a")
STILL, MOVED = ("ready", 0, 0, 0), ("running", 1, 0, 0)


async def rounds() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def watched(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Any], scene: Callable[[Poller], Awaitable[None]]
) -> None:
    monkeypatch.setattr(live_changes, "change_stamps", lambda _connection, wanted: dict.fromkeys(wanted, answer()))

    async def read(look: Callable[[Any], Any]) -> Any:
        return look(None)

    async def whole() -> None:
        await scene(Poller(read, lambda: asyncio.sleep(0)))

    asyncio.run(whole())


def test_a_database_that_is_down_is_asked_again_and_a_fault_of_ours_ends_the_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised: list[Exception] = [Unavailable("database_busy", place="ledger", reason="it is down")]

    def answer() -> object:
        if raised:
            raise raised[0]
        return MOVED

    async def scene(every: Poller) -> None:
        with every.watching(*KEY) as watcher:
            watcher.seen = STILL
            await rounds()
            assert not watcher.moved.is_set()
            raised.clear()
            await rounds()
            assert watcher.moved.is_set()
            raised.append(AssertionError("ours"))
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            await rounds()
            assert watcher.over
        raised.clear()
        with every.watching(*KEY) as again:
            again.seen = STILL
            await rounds()
            assert again.moved.is_set(), "the next stream begins anew"
            assert not again.over

    watched(monkeypatch, answer, scene)

"""The door of large bodies: who was let in least comes in next, and what waits for others is not called slow."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request

from lodger.engine.server import room, turns
from lodger.engine.server.bodies import Bodies
from lodger.engine.server.room import FREE, Room


def test_one_body_comes_in_beside_a_crowds_twenty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_seconds", lambda: 0.0)  # whatever else the machine does meanwhile
    inside: list[str] = []
    busy = asyncio.Event()

    async def send(hall: Room, name: str, pieces: int) -> None:
        with hall.place(name) as place:
            await place.add(FREE)
            for _ in range(pieces):
                await place.add(1024)
                inside.append(name)
                if len(inside) == 100:
                    busy.set()

    async def scene() -> None:
        hall = Room(1 << 30)
        crowd = [asyncio.create_task(send(hall, "crowd", 20)) for _ in range(20)]
        await busy.wait()
        await send(hall, "neighbour", 10)
        assert inside.index("neighbour") <= 105
        assert len(inside) < 150, "its ten pieces came in between the crowd's"
        await asyncio.gather(*crowd)

    asyncio.run(scene())


def test_a_body_that_waits_at_the_door_longer_than_it_may_take_is_not_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PER_S", 100_000)

    async def arrive() -> AsyncIterator[bytes]:
        yield b"x" * FREE
        yield b"y" * 150_000

    async def scene() -> None:
        request = Request({"type": "http", "headers": []})
        monkeypatch.setattr(request, "stream", arrive)
        async with Bodies(1 << 20, 1.0, Room(1 << 30)).read(request) as body:
            assert len(body) == FREE + 150_000

    asyncio.run(scene())

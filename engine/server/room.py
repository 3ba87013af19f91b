"""How much of what is sent may be in memory, and how fast it comes in: all bodies of a process share one room and one door.

Without the door twenty senders on a fast network keep the event loop reading, and everybody's answer waits behind each of their
pieces; without the shares of the room one sender of slow large bodies keeps all others out. Who was let in least comes in next.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from lodger.engine.server.problems import Refused
from lodger.engine.server.turns import Turns

#: All bodies that are in memory at once, bytes; more where one upload may be as large.
TOGETHER = 128 * 1024 * 1024
#: What of a body always has room, and comes in at once, bytes.
FREE = 64 * 1024
#: Bytes a second that come in of all that is larger.
PER_S = 32 * 1024 * 1024


class Place:
    """One body's place in the room."""

    def __init__(self, room: "Room", name: str) -> None:
        self._room = room
        self._name = name
        self._size = 0

    async def add(self, count: int) -> float:
        """Make room for so many bytes more, and let them in; give for how many seconds they waited outside.

        Raises:
            Refused: server_busy.
        """
        self._size += count
        self._room.held += count
        self._room.by_name[self._name] += count
        if self._size <= FREE:
            return 0.0
        if self._room.held > self._room.most or self._room.by_name[self._name] > self._room.most // 2:
            raise Refused(
                503,
                "server_busy",
                "too many large requests arrive at once",
                fix="try again in a moment",
                headers={"Retry-After": "1", "Connection": "close"},
            )
        return await self._room.door(self._name, count)

    def leave(self) -> None:
        """Give the place back."""
        self._room.held -= self._size
        self._room.by_name[self._name] -= self._size
        if not self._room.by_name[self._name]:
            del self._room.by_name[self._name]
        self._size = 0


class Room:
    """At most ``most`` bytes together, half of them of one name."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self.by_name: Counter[str] = Counter()
        self._door = Turns(1, 1)

    @contextmanager
    def place(self, name: str) -> Iterator[Place]:
        """Give a place for a body, for the block."""
        place = Place(self, name)
        try:
            yield place
        finally:
            place.leave()

    async def door(self, name: str, count: int) -> float:
        """Let so many bytes in, in the turn of their name; give for how many seconds they waited."""
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        async with self._door.turn(name):
            passed = loop.create_future()
            timer = loop.call_later(count / PER_S, _settle, passed)
            try:
                await passed
            finally:
                timer.cancel()
        return loop.time() - asked_s


def _settle(passed: "asyncio.Future[None]") -> None:
    if not passed.done():
        passed.set_result(None)

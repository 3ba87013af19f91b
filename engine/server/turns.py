"""Whose turn it is when more is asked than can be done at once: the one's who was given least, so that nobody's one request waits
behind somebody's thousand.

A first-in-first-out limit was tried (anyio's, and one line for each token before it): a neighbour's request waited behind all that
a crowd had asked before, four seconds beside a thousand clients. This is borrowed-virtual-time scheduling (Duda and Cheriton, SOSP
1999): each name's clock runs with the seconds that were worked for it, the name whose clock is furthest behind is next, and whoever
comes back from a pause is ahead of those who were busy meanwhile, by :data:`CREDIT_S` at most, so that pausing hoards nothing. One of
the turns is kept for those who are ahead: being next is worth little while the work of others holds every thread.

While nobody waits, the time from which that credit is counted goes on as the real one does. It stood still at first, where the last
one served had left it: who had asked now and then in a quiet hour was thought to have been given more than a crowd that came fresh, and
the crowd's whole credit, a second for each of its names, went before him.
"""

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")
#: Seconds of work by which whoever asks seldom is ahead, and what a turn is thought to cost until it is over.
CREDIT_S, EXPECTED_S = 0.2, 0.005
#: Of one name's requests that wait so many count.
MANY = 8
#: Names whose clocks are kept; the one that was longest untouched is forgotten.
KEPT = 20_000
#: Begins the names of those who are not known yet: they are ahead of nobody.
STRANGER = "?"
#: Whose request this is; the line sets it.
whose: ContextVar[str] = ContextVar("lodger_whose", default="")


@dataclass(slots=True)
class _Name:
    clock_s: float
    running: int = 0
    queued: bool = False
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    @property
    def place_s(self) -> float:
        """Give where it stands: what waits of it counts as if it were given, so that one request goes before many."""
        return self.clock_s + EXPECTED_S * min(MANY, len(self.waiting))


class Turns:
    """At most ``most`` at once, of one name at most ``share``; of more than two, the last for who was given little. Belongs to the
    event loop that asks first.

    Args:
        elapsed_s: tells the seconds that work takes; without it the loop's own clock does.
    """

    def __init__(self, most: int, share: int, elapsed_s: Callable[[], float] | None = None) -> None:
        self._most = most
        self._share = share
        self._elapsed_s = elapsed_s or _seconds
        self._running = 0
        self._now_s = 0.0
        self._seen_s: float | None = None
        self._names: OrderedDict[str, _Name] = OrderedDict()
        self._heap: list[tuple[float, int, str]] = []
        self._serial = 0
        self._threads: CapacityLimiter | None = None
        #: How many wait for a turn.
        self.waiting = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread, in the turn of whose request this is."""
        async with self.turn(whose.get()):
            return await self.thread(work)

    async def thread(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread; the turn is held already."""
        if self._threads is None:
            self._threads = CapacityLimiter(self._most)
        return await to_thread.run_sync(work, limiter=self._threads)

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for a turn; hold it for the block."""
        found = self._found(name)
        if self._may(found) and found.running < self._share and not self._heap:
            self._begin(found)
        else:
            await self._wait(name, found)
        begun_s = self._elapsed_s()
        try:
            yield
        finally:
            found.clock_s += self._elapsed_s() - begun_s - EXPECTED_S
            self._end(name, found)

    def __len__(self) -> int:
        return len(self._names)

    def _found(self, name: str) -> _Name:
        self._age()
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = _Name(0.0)
            if len(self._names) > KEPT:
                self._forget()
        else:
            self._names.move_to_end(name)
        if not found.running and not found.waiting:
            found.clock_s = max(found.clock_s, self._now_s - (0.0 if name.startswith(STRANGER) else CREDIT_S))
        return found

    def _age(self) -> None:
        seen_s, self._seen_s = self._seen_s, self._elapsed_s()
        if seen_s is not None and not self._heap:
            self._now_s += self._seen_s - seen_s

    def _forget(self) -> None:
        for name in tuple(islice(self._names, KEPT // 100)):
            if self._names[name].running or self._names[name].waiting:
                self._names.move_to_end(name)
            else:
                del self._names[name]

    def _may(self, found: _Name) -> bool:
        """Tell whether a turn is free for this name, if it is next."""
        if self._most > 2 and self._running == self._most - 1:
            alone = not found.running and len(found.waiting) <= 1
            return alone and found.clock_s <= self._now_s - CREDIT_S / 2
        return self._running < self._most

    def _begin(self, found: _Name) -> None:
        self._running += 1
        found.running += 1
        self._now_s = max(self._now_s, found.clock_s)
        found.clock_s += EXPECTED_S

    def _end(self, name: str, found: _Name) -> None:
        self._age()
        self._running -= 1
        found.running -= 1
        self._queue(name, found)
        self._next()

    def _queue(self, name: str, found: _Name) -> None:
        """Put a name among those that are next, unless it stands there, has its share or nothing that waits."""
        if found.waiting and not found.queued and found.running < self._share:
            found.queued = True
            self._serial += 1
            heapq.heappush(self._heap, (found.place_s, self._serial, name))

    def _next(self) -> None:
        while self._heap and self._running < self._most:
            place_s, _, name = heapq.heappop(self._heap)
            found = self._names[name]
            found.queued = False
            if place_s < found.place_s and self._heap and self._heap[0][0] < found.place_s:
                self._queue(name, found)  # it was worked for, or asked for more, since it stands there
                continue
            if not self._may(found):
                self._queue(name, found)  # nor may anybody behind it
                return
            turn = _first(found)
            if turn is not None:
                self._begin(found)
                turn.set_result(None)
            self._queue(name, found)

    async def _wait(self, name: str, found: _Name) -> None:
        turn = asyncio.get_running_loop().create_future()
        found.waiting.append(turn)
        self._queue(name, found)
        self.waiting += 1
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(name, found)  # the turn came just when its request went away
            else:
                turn.cancel()
            raise
        finally:
            self.waiting -= 1


def _seconds() -> float:
    return asyncio.get_running_loop().time()


def _first(found: _Name) -> asyncio.Future[None] | None:
    while found.waiting:
        turn = found.waiting.popleft()
        if not turn.done():
            return turn
    return None

"""Lets requests in, a few in each turn of the event loop: the one's who was let in least before the others'.

Taking a request apart and beginning it costs a third of a millisecond, and asyncio does so for all that came at once before it looks
who has come since: a thousand connections of one moment kept a neighbour waiting for half a second. Here whoever comes is put in
line, and the line moves by :data:`A_TURN` in a turn of the loop, so that whoever came meanwhile is seen between them. The order is that
of :mod:`lodger.engine.server.turns` (borrowed virtual time), with requests for seconds: at this door nobody knows yet what one costs.

While those inside wait for each other already, only who is ahead is let in at once, and one of the others now and then: a request that
was begun waits no shorter than one in line, and what beginning it costs is taken from those whose turn has come.
"""

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from lodger.engine.server.turns import MANY, STRANGER

#: Requests that are let in within one turn of the event loop.
A_TURN = 2
#: Requests by which whoever asks seldom is ahead.
CREDIT = 16
#: While it is full inside: seconds between two looks whether it still is, and between two that are let in nevertheless.
PAUSE_S, TRICKLE_S = 0.002, 0.02
#: Names whose clocks are kept; the one that was longest untouched is forgotten.
KEPT = 20_000
Act = Callable[[], None]


@dataclass(slots=True)
class _Name:
    clock: int
    waiting: deque[tuple[Act, int]] = field(default_factory=deque)

    @property
    def place(self) -> int:
        """Give where it stands: one request goes before many."""
        return self.clock + min(MANY, len(self.waiting))


class Porter:
    """Belongs to the event loop in which it is asked.

    Args:
        full: tells whether enough is under way.
    """

    def __init__(self, full: Callable[[], bool] = lambda: False) -> None:
        self._full = full
        self._pausing: asyncio.TimerHandle | None = None
        self._trickle_s = 0.0
        self._names: OrderedDict[str, _Name] = OrderedDict()
        self._heap: list[tuple[int, int, str]] = []
        self._serial = 0
        self._now = 0
        self._left = A_TURN
        self._turning = False
        self.waiting = 0

    def offer(self, name: str, act: Act, weight: int = 1) -> None:
        """Do this now when nobody waits and this turn of the loop has room, else in the turn of this name.

        Args:
            weight: for how many requests it counts.
        """
        found = self._found(name)
        if self._left > 0 and not self._heap and not self._held(found):
            self._count(found, weight)
            self._arm()
            act()
            return
        found.waiting.append((act, weight))
        self.waiting += 1
        if len(found.waiting) == 1:
            self._queue(name, found)
        self._arm()

    def __len__(self) -> int:
        return len(self._names)

    def _found(self, name: str) -> _Name:
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = _Name(-CREDIT)
            if len(self._names) > KEPT:
                self._forget()
        else:
            self._names.move_to_end(name)
        if not found.waiting:
            found.clock = max(found.clock, self._now - (0 if name.startswith(STRANGER) else CREDIT))
        return found

    def _forget(self) -> None:
        for name in tuple(islice(self._names, KEPT // 100)):
            if self._names[name].waiting:
                self._names.move_to_end(name)
            else:
                del self._names[name]

    def _queue(self, name: str, found: _Name) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (found.place, self._serial, name))

    def _count(self, found: _Name, weight: int) -> None:
        self._left -= weight
        self._now = max(self._now, found.clock)
        found.clock += weight

    def _arm(self) -> None:
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _held(self, found: _Name) -> bool:
        """Tell whether this name waits until there is room inside."""
        ahead = len(found.waiting) <= 1 and found.clock <= self._now - CREDIT // 2
        return not ahead and self._full()

    def _pause(self) -> bool:
        """Look again soon, unless it is time for one more nevertheless."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._trickle_s:
            self._trickle_s = loop.time() + TRICKLE_S
            return False
        self._pausing = loop.call_later(PAUSE_S, self._turn)
        return True

    def _turn(self) -> None:
        self._turning = False
        self._left = A_TURN
        if self._pausing is not None:
            self._pausing.cancel()
            self._pausing = None
        if not self._heap:
            # Clocks are compared while somebody waits; kept on, they set those who come fresh before him who did not.
            self._names.clear()
            self._now = 0
        while self._heap and self._left > 0:
            place, _, name = heapq.heappop(self._heap)
            found = self._names[name]
            if place < found.place and self._heap and self._heap[0][0] < found.place:
                self._queue(name, found)  # more of it came since it stands there
                continue
            if self._held(found) and self._pause():
                self._queue(name, found)
                return
            act, weight = found.waiting.popleft()
            self.waiting -= 1
            self._count(found, weight)
            if found.waiting:
                self._queue(name, found)
            self._arm()  # before it: what is let in may raise
            act()

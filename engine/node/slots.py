"""The slots of a node: for computing. An attempt that waits for an answer holds none, and takes one when the answer comes.

Attempts that wait for a slot come before new claims, and tenants take turns.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial

#: Memory that the engine and the kernel hold for a waiting worker, beside that of its script.
WORKER_BYTES = 2 << 20


class Slots:
    """Holders of a node's slots, and attempts that wait for one.

    Args:
        number: returns how many there are.
        freed: called when one is free, or a waiting attempt has given its slot back.
    """

    def __init__(self, number: Callable[[], int], freed: Callable[[], None]) -> None:
        self._number = number
        self._freed = freed
        self._holders: set[object] = set()
        self._asleep: dict[object, int] = {}
        self._queues: OrderedDict[str, deque[tuple[object, asyncio.Future[None]]]] = OrderedDict()

    @property
    def free(self) -> int:
        """How many attempts may start: none while another one waits for a slot."""
        return self._number() - len(self._holders) - sum(map(len, self._queues.values()))

    @property
    def waiting(self) -> int:
        """How many attempts wait for an answer, or with one for a slot."""
        return len(self._asleep)

    @property
    def held(self) -> int:
        """How many attempts hold a slot."""
        return len(self._holders)

    def holds(self, holder: object) -> bool:
        """Whether an attempt holds a slot."""
        return holder in self._holders

    def memory_bytes(self, holder: object) -> int | None:
        """Return the measured memory of an attempt that waits for an answer; None for one that computes, or is yet to begin."""
        return self._asleep.get(holder)

    def start(self, holder: object) -> None:
        """Allot a slot to a new attempt."""
        self._holders.add(holder)

    def end(self, holder: object) -> None:
        """Take back the slot of an attempt; safe to call twice."""
        self._asleep.pop(holder, None)
        if holder in self._holders:
            self._holders.discard(holder)
            self.hand_on()

    def of(self, holder: object, tenant: str) -> "AttemptSlot":
        """Return the slot of an attempt, as its worker's driver sees it."""
        return AttemptSlot(self, holder, tenant)

    def leave(self, holder: object, memory_bytes: int) -> None:
        """Take back the slot of an attempt that waits."""
        if holder in self._holders:
            self._holders.discard(holder)
            self._asleep[holder] = memory_bytes + WORKER_BYTES
            self.hand_on()
            self._freed()

    def take(self, holder: object) -> None:
        """Allot a slot to an attempt that computes, though none may be free."""
        self._asleep.pop(holder, None)
        self._holders.add(holder)

    async def enter(self, holder: object, tenant: str) -> None:
        """Wait until an attempt that is new, or that has got the answer it waited for, holds a slot."""
        if holder in self._holders:
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(tenant, deque()).append((holder, turn))
        turn.add_done_callback(partial(self._leave_queue, tenant))
        self.hand_on()
        await turn

    def _leave_queue(self, tenant: str, turn: "asyncio.Future[None]") -> None:
        """Remove a cancelled wait for a slot from its tenant's queue."""
        queue = self._queues.get(tenant)
        if queue is None or not turn.cancelled():
            return
        remaining = deque(item for item in queue if item[1] is not turn)
        if remaining:
            self._queues[tenant] = remaining
        else:
            del self._queues[tenant]
        self._freed()

    def hand_on(self) -> None:
        """Allot free slots to the attempts that wait for one, of each tenant one in turn."""
        while self._queues and len(self._holders) < self._number():
            tenant, queue = self._queues.popitem(last=False)
            holder, turn = queue.popleft()
            if queue:
                self._queues[tenant] = queue
            if not turn.done():
                self.take(holder)
                turn.set_result(None)


class AttemptSlot:
    """The slot of one attempt. Satisfies :class:`lodger.sandbox.job.Slot`."""

    def __init__(self, slots: Slots, holder: object, tenant: str) -> None:
        self._slots = slots
        self._holder = holder
        self._tenant = tenant

    def leave(self, memory_bytes: int) -> None:
        """Return the slot while the attempt waits for an answer."""
        self._slots.leave(self._holder, memory_bytes)

    async def enter(self) -> None:
        """Wait until the attempt holds a slot again."""
        await self._slots.enter(self._holder, self._tenant)

    def take(self) -> None:
        """Hold a slot again at once, even if none is free."""
        self._slots.take(self._holder)

"""The one start/stop contract of everything that runs in a node."""

import asyncio
import math
from collections.abc import Awaitable
from typing import Any, ClassVar

from lodger.engine.core.clock import Clock
from lodger.engine.core.events import Fault
from lodger.engine.node.context import NodeContext, ServerClock

#: First and longest wait after a round that failed, seconds.
BACKOFF_S = 0.1
BACKOFF_MAX_S = 5.0


class Loop:
    """A loop of rounds. ``start`` and ``stop`` are safe to call twice, in any order.

    A round that raises because the host lacks something (full disk, busy database) is tried again with back-off; any
    other exception is a bug of ours, and the loop goes on likewise; both are reported by :meth:`fault`. One bad round must not end the
    service of every tenant.
    """

    name: ClassVar[str]

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._task: asyncio.Task[None] | None = None
        self._woken_up = asyncio.Event()

    async def start(self) -> None:
        """Start the loop that runs the rounds."""
        if self._task is None:
            self._task = asyncio.create_task(self._loop(), name=f"lodger-{self.name}")

    async def stop(self) -> None:
        """End the loop; a round that is under way is cancelled at its next wait."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def wake(self) -> None:
        """End the present wait now."""
        self._woken_up.set()

    def fault(self, error: Exception) -> None:
        """Report that something of this loop failed; it is tried again."""
        raise NotImplementedError

    async def round(self) -> float:
        """Carry out one round; return the seconds to wait before the next one, unless woken."""
        raise NotImplementedError

    async def _loop(self) -> None:
        """Run rounds until the service is stopped; after a failure wait longer each time."""
        backoff = BACKOFF_S
        while True:
            self._woken_up.clear()
            try:
                wait = await self.round()
                backoff = BACKOFF_S
            except Exception as error:  # noqa: BLE001 - published, and tried again: see the class
                self.fault(error)
                wait, backoff = backoff, min(backoff * 2, BACKOFF_MAX_S)
            if wait > 0:
                await self.wait(wait)
            else:
                await asyncio.sleep(0)

    async def wait(self, seconds: float) -> None:
        """Wait that long on the clock, or until woken; infinity for the latter alone."""
        if self._woken_up.is_set():
            return
        if seconds == math.inf:
            await self._woken_up.wait()
            return
        alarm = self.clock.call_later(seconds, self._woken_up.set)
        try:
            await self._woken_up.wait()
        finally:
            alarm.cancel()


class Service(Loop):
    """A loop of a node, whose failures are published as a :class:`lodger.engine.core.events.Fault`."""

    clock: ServerClock

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context.clock)
        self.context = context

    @property
    def waiting(self) -> int:
        """Number of things that wait for a round, where a test has to wait for them."""
        return 0

    def wake_on(self, *kinds: type[Any]) -> None:
        """End the present wait at each event of these types."""
        for kind in kinds:
            self.context.bus.subscribe(kind, lambda _event: self.wake())

    def fault(self, error: Exception) -> None:
        """Publish that something of this service failed; it is tried again."""
        self.context.bus.publish(Fault(self.name, error))


async def either(*waits: Awaitable[object]) -> None:
    """Wait for the first of several awaitables; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

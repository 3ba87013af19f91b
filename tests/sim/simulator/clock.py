"""The clock of a world: a wall clock that can be stepped, and elapsed time that cannot."""

import asyncio
from collections.abc import Callable

from tests.sim.simulator.loop import VirtualLoop


class WorldClock:
    """A machine's clock on the virtual loop. Satisfies :class:`lodger.engine.core.clock.Clock`.

    Attributes:
        stepped_us: total of all steps of the wall clock.
        suspended_us: total time of suspension.
    """

    def __init__(self, loop: VirtualLoop, start_us: int) -> None:
        self._loop = loop
        self._start_us = start_us
        self.stepped_us = 0
        self.suspended_us = 0
        #: Latest time shown by the wall clock before its last step.
        self._shown_us = start_us

    def now_us(self) -> int:
        """Return the wall clock in microseconds since 1970, UTC."""
        return self._start_us + self.stepped_us + self.suspended_us + round(self._loop.time() * 1_000_000)

    def elapsed_s(self) -> float:
        """Return the elapsed seconds, suspension included."""
        return self._loop.time() + self.suspended_us / 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Sleep in virtual time."""
        await asyncio.sleep(max(0.0, seconds))

    def call_later(self, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        """Call back after virtual time."""
        return self._loop.call_later(seconds, callback)

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._shown_us = self.latest_us()
        self.stepped_us += round(seconds * 1_000_000)

    def suspend(self, seconds: float) -> None:
        """Suspend the machine: timers do not advance."""
        self._shown_us = self.latest_us()
        self.suspended_us += round(seconds * 1_000_000)

    def latest_us(self) -> int:
        """Return the latest time that the wall clock ever showed; no slot beyond it may be accounted."""
        return max(self._shown_us, self.now_us())

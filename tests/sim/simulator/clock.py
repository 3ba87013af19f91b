"""The clocks of the simulated world: one wall clock that the world may step, one elapsed time that never does."""

import asyncio

from tests.sim.simulator.loop import VirtualLoop


class WorldClock:
    """A machine's clock on the virtual loop. Satisfies :class:`lodger.engine.core.clock.Clock`.

    Attributes:
        stepped_us: by how much the wall clock was set forward (or back) since the beginning.
        suspended_us: how long the machine was suspended since then.
    """

    def __init__(self, loop: VirtualLoop, start_us: int) -> None:
        self._loop = loop
        self._start_us = start_us
        self.stepped_us = 0
        self.suspended_us = 0
        #: The latest instant that the wall clock ever showed up to its last step.
        self._shown_us = start_us

    def now_us(self) -> int:
        """Microseconds since 1970, UTC, as this machine believes."""
        return self._start_us + self.stepped_us + self.suspended_us + round(self._loop.time() * 1_000_000)

    def elapsed_s(self) -> float:
        """Seconds that have passed, those in suspension included."""
        return self._loop.time() + self.suspended_us / 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Wait that long in virtual time."""
        await asyncio.sleep(max(0.0, seconds))

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._shown_us = self.latest_us()
        self.stepped_us += round(seconds * 1_000_000)

    def suspend(self, seconds: float) -> None:
        """Let time pass in which nothing ran and no timer went on."""
        self._shown_us = self.latest_us()
        self.suspended_us += round(seconds * 1_000_000)

    def latest_us(self) -> int:
        """Give the latest instant that it ever showed: nothing may be accounted beyond."""
        return max(self._shown_us, self.now_us())

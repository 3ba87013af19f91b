"""A clock that stands until it is moved."""

import asyncio
import threading
from datetime import UTC, datetime

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.service.nouns.base import aware

#: Where the time of a stage begins unless it is told otherwise: a Monday, in winter.
BEGIN = datetime(2027, 1, 4, 8, 0, tzinfo=UTC)


class FakeClock:
    """Satisfies :class:`lodger.engine.core.clock.Clock`; safe to move from any thread.

    Raises:
        InputError: instant_naive.
    """

    def __init__(self, at: datetime = BEGIN) -> None:
        aware(at)
        self._us = to_us(at)
        self._begin_us = self._us
        self._lock = threading.Lock()
        self._sleepers: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def now(self) -> datetime:
        """Return the instant, UTC."""
        return from_us(self._us)

    def now_us(self) -> int:
        """Microseconds since 1970, UTC."""
        return self._us

    def elapsed_s(self) -> float:
        """Seconds by which the clock has moved since it was made."""
        return (self._us - self._begin_us) / 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been moved that far."""
        if seconds <= 0:
            return
        woken = asyncio.Event()
        with self._lock:
            self._sleepers.append((self._us + round(seconds * 1_000_000), asyncio.get_running_loop(), woken))
        await woken.wait()

    def move_to(self, us: int) -> None:
        """Set the clock to an instant that is not before the present one."""
        with self._lock:
            self._us = max(self._us, us)
            late = [each for each in self._sleepers if each[0] <= self._us]
            self._sleepers = [each for each in self._sleepers if each[0] > self._us]
        for _us, loop, woken in late:
            if not loop.is_closed():
                loop.call_soon_threadsafe(woken.set)

"""A clock that stands until it is moved."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.service.nouns.base import aware

#: Where the time of a stage begins unless it is told otherwise: a Monday, in winter.
BEGIN = datetime(2027, 1, 4, 8, 0, tzinfo=UTC)


class _FakeAlarm:
    def __init__(self, at_us: int, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        self.at_us, self.loop, self._callback = at_us, loop, callback
        self.cancelled = False

    def cancel(self) -> None:
        """Drop the call of an alarm."""
        self.cancelled = True

    def ring(self) -> None:
        """Make the call of an alarm, unless it was cancelled."""
        if not self.cancelled:
            self._callback()


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
        self._alarms: list[_FakeAlarm] = []

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
        alarm = self.call_later(seconds, woken.set)
        try:
            await woken.wait()
        finally:
            alarm.cancel()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> "_FakeAlarm":
        """Call back once the clock has been moved that far."""
        with self._lock:
            alarm = _FakeAlarm(self._us + round(seconds * 1_000_000), asyncio.get_running_loop(), callback)
            self._alarms = [each for each in self._alarms if not each.cancelled]
            self._alarms.append(alarm)
        return alarm

    def move_to(self, us: int) -> None:
        """Set the clock to an instant that is not before the present one."""
        with self._lock:
            self._us = max(self._us, us)
            late = [each for each in self._alarms if each.at_us <= self._us]
            self._alarms = [each for each in self._alarms if each.at_us > self._us]
        for each in late:
            if not each.loop.is_closed():
                each.loop.call_soon_threadsafe(each.ring)

"""The clock: the only source of time and waiting in the engine, always injected.

Instants are aware UTC datetimes; the ledger keeps integer microseconds since 1970 (:func:`to_us`).
Durations are measured by CLOCK_BOOTTIME, which goes on while a machine is suspended.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(instant: datetime) -> int:
    """Microseconds since 1970 of an aware instant; exact for every year from 1 to 9999."""
    if instant.tzinfo is None:
        raise TypeError("a naive datetime is not an instant")
    return (instant - EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """Return the aware UTC instant of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=us)


def from_us_or_none(us: int | None) -> datetime | None:
    """Return the aware UTC instant of microseconds since 1970; None for None."""
    return None if us is None else from_us(us)


def zulu(instant: datetime) -> str:
    """Write an aware instant as RFC 3339 with Z, without empty fractions."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


class Alarm(Protocol):
    """A call that a clock will make."""

    def cancel(self) -> None:
        """Drop the call of an alarm; safe to call twice, and after the call."""


class Clock(Protocol):
    """Wall time, elapsed time and waiting."""

    def now_us(self) -> int:
        """Microseconds since 1970, UTC."""

    def elapsed_s(self) -> float:
        """Seconds on a clock that never steps and counts suspended time."""

    async def sleep(self, seconds: float) -> None:
        """Wait that long on this clock."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> "Alarm":
        """Call back in the running event loop after that long on this clock, unless cancelled."""


class SteadyClock:
    """A clock whose wall time does not follow a step: it goes on by the clock that never steps, until both agree again.

    A clock that is set a day forward would otherwise move a day of slots, retries and expiries. Slow corrections
    are followed.

    Args:
        tolerance_s: the largest change of the wall time against the elapsed time, between two readings, that is followed.

    Attributes:
        stepped_us: how far the clock is from this one's time now, in microseconds; 0 while they agree.
    """

    def __init__(self, clock: Clock, tolerance_s: float) -> None:
        self._clock = clock
        self.elapsed_s, self.sleep, self.call_later = clock.elapsed_s, clock.sleep, clock.call_later
        self._tolerance_us = int(tolerance_s * 1_000_000)
        self._seen = (clock.now_us(), clock.elapsed_s())
        self.stepped_us = 0

    def now_us(self) -> int:
        """Microseconds since 1970, UTC, without the present step."""
        now_us, elapsed_s = self._clock.now_us(), self._clock.elapsed_s()
        seen_us, seen_s = self._seen
        expected_us = seen_us + int((elapsed_s - seen_s) * 1_000_000)
        step_us = now_us - expected_us
        if abs(step_us) > self._tolerance_us:
            self.stepped_us = step_us
            return expected_us
        self.stepped_us, self._seen = 0, (now_us, elapsed_s)
        return now_us


class SystemClock:
    """The machine's own clock."""

    def now_us(self) -> int:
        """Microseconds since 1970, UTC."""
        return time.time_ns() // 1000

    def elapsed_s(self) -> float:
        """Seconds of CLOCK_BOOTTIME."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        import asyncio  # imported at the first wait: reading the time needs none of it

        await asyncio.sleep(max(0.0, seconds))

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        """Call back in the running event loop after so many seconds, unless cancelled."""
        import asyncio

        return asyncio.get_running_loop().call_later(seconds, callback)

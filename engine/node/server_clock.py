"""A node's clock, put right by the database server's: what is due is due at the same moment on every node."""

from lodger.engine.core.clock import Clock

#: A clock that is further off than this is broken: scripts would be told a wrong time, so the node claims nothing.
MOST_OFF_US = 2_000_000


class ServerClock:
    """The injected clock plus the offset that was measured last; durations are the injected clock's own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.offset_us = 0

    @property
    def skewed(self) -> bool:
        """Whether this machine's clock is too far off to work by."""
        return abs(self.offset_us) > MOST_OFF_US

    def measured(self, server_us: int, asked_us: int, answered_us: int) -> None:
        """Take the server's time, read between two moments of the injected clock; what is within the doubt is no offset."""
        doubt = (answered_us - asked_us) // 2
        found = server_us - (asked_us + doubt)
        self.offset_us = found if abs(found) > max(0, doubt) else 0

    def own_us(self) -> int:
        """Give the injected clock's time."""
        return self._clock.now_us()

    def now_us(self) -> int:
        """Microseconds since 1970, UTC, as the server counts them."""
        return self._clock.now_us() + self.offset_us

    def elapsed_s(self) -> float:
        """Seconds on the injected clock that never steps."""
        return self._clock.elapsed_s()

    async def sleep(self, seconds: float) -> None:
        """Wait that long on the injected clock."""
        await self._clock.sleep(seconds)

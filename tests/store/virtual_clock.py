"""The clock of the store's tests, and the instant at which it starts."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from lodger.engine.core.clock import Alarm, to_us

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class VirtualClock:
    """A clock that stands until it is moved."""

    def __init__(self, us: int = to_us(EPOCH)) -> None:
        self.us = us
        self.elapsed_us = 0

    def now_us(self) -> int:
        return self.us

    def elapsed_s(self) -> float:
        return self.elapsed_us / 1e6

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits in these tests")

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        raise AssertionError("nothing waits in these tests")

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.us += round(seconds * 1e6)
        self.elapsed_us += round(seconds * 1e6)

"""Watches one attempt's clocks from outside: the wall deadline, and the worker's CPU clock as a second pair of eyes.

The kernel's timer in the worker is the wall for CPU time. This look from outside does not trust that it was armed: it reads the worker's
CPU clock when the limit can be reached at the earliest, and again when what is left can be used up. While a process runs, its clock is up
to a tick old.
"""

import asyncio
import time
from collections.abc import Callable

_SHORTEST_S = 0.002


def cpu_ms(pid: int) -> float:
    """Give the CPU time another process has used, -1 when it is gone."""
    if pid <= 0:  # these numbers would name our own clock
        return -1.0
    try:
        return time.clock_gettime_ns((~pid << 3) | 2) / 1e6
    except OSError:
        return -1.0


class AttemptWatch:
    """Calls back once, when a deadline has passed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int) -> None:
        self._loop = loop
        self._pid = pid
        self._wall: asyncio.TimerHandle | None = None
        self._cpu: asyncio.TimerHandle | None = None
        self.cpu_before_ms = max(0.0, cpu_ms(pid))  # exact: the worker sleeps

    def start(self, wall_ms: int, cpu_limit_ms: int, on_wall: Callable[[], None], on_cpu: Callable[[], None]) -> None:
        """Arm both clocks; ``cpu_limit_ms`` counts from now."""
        self._wall = self._loop.call_later(wall_ms / 1000, on_wall)
        if cpu_limit_ms < wall_ms:
            self._cpu = self._loop.call_later(cpu_limit_ms / 1000, self._look, cpu_limit_ms, on_cpu)

    def stop(self) -> None:
        """Disarm; safe twice."""
        for handle in (self._wall, self._cpu):
            if handle is not None:
                handle.cancel()
        self._wall = self._cpu = None

    def used_ms(self) -> float:
        """CPU time since hand-over, 0 when the worker is gone."""
        now = cpu_ms(self._pid)
        return max(0.0, now - self.cpu_before_ms)

    def _look(self, limit_ms: int, on_cpu: Callable[[], None]) -> None:
        left = limit_ms - self.used_ms()
        if left <= 0:
            on_cpu()
        else:
            self._cpu = self._loop.call_later(max(left / 1000, _SHORTEST_S), self._look, limit_ms, on_cpu)

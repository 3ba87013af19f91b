"""Request rates by host: a request over the rate waits for its turn, so that no host is flooded."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

#: Hosts that are remembered; the one that was not asked for longest is forgotten first.
KEPT = 20_000


class Pace:
    """A token bucket for each key: ``burst`` at once, then ``per_s`` a second, first come, first served.

    Args:
        per_s: requests a second.
        burst: requests at once after a quiet time.
        elapsed_s: a monotonic clock.
    """

    def __init__(self, per_s: float, burst: int, elapsed_s: Callable[[], float]) -> None:
        self._gap_s = 1 / per_s
        self._ahead_s = (burst - 1) / per_s
        self._elapsed_s = elapsed_s
        self._next: OrderedDict[Hashable, float] = OrderedDict()

    def turn(self, key: Hashable, max_s: float) -> float | None:
        """Take the next turn and return the seconds until then. None, without taking a turn, if that is more than ``max_s``."""
        now = self._elapsed_s()
        turn = max(self._next.get(key, now - self._ahead_s), now - self._ahead_s)
        if turn - now > max_s:
            return None
        self._next[key] = turn + self._gap_s
        self._next.move_to_end(key)
        while len(self._next) > KEPT:
            self._next.popitem(last=False)
        return max(0.0, turn - now)

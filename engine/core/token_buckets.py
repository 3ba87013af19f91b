"""Token buckets by key: the one rate limiter, of requests to the API and of requests to other hosts."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

#: Keys that are remembered; the one that was not used for longest is forgotten first.
KEPT = 50_000


class TokenBuckets:
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

    def turn(self, key: Hashable, max_s: float) -> float:
        """Return the seconds to wait for the next token of a key, and take it if they are at most ``max_s``."""
        now = self._elapsed_s()
        turn = max(self._next.get(key, now - self._ahead_s), now - self._ahead_s)
        if turn - now <= max_s:
            self._next[key] = turn + self._gap_s
            self._next.move_to_end(key)
            while len(self._next) > KEPT:
                self._next.popitem(last=False)
        return max(0.0, turn - now)

    def left(self, key: Hashable) -> int:
        """Return how many tokens a key has now."""
        now = self._elapsed_s()
        turn = max(self._next.get(key, now - self._ahead_s), now - self._ahead_s)
        return max(0, int((now - turn) / self._gap_s + 1.000001))

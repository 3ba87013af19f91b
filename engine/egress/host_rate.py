"""How often a host may be asked: a request that comes too early waits for its turn, so nobody is flooded through us."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

#: Hosts that are remembered; the one that was not asked for longest is forgotten first.
KEPT = 20_000


class Pace:
    """A bucket per key: so many at once, then so many a second, in the order of asking.

    Args:
        per_s: requests a second.
        burst: so many go at once when it was quiet.
        elapsed_s: a clock that never steps.
    """

    def __init__(self, per_s: float, burst: int, elapsed_s: Callable[[], float]) -> None:
        self._gap_s = 1 / per_s
        self._ahead_s = (burst - 1) / per_s
        self._elapsed_s = elapsed_s
        self._next: OrderedDict[Hashable, float] = OrderedDict()

    def turn(self, key: Hashable, max_s: float) -> float | None:
        """Take the next turn; give how many seconds it is away. None, and no turn is taken, when that is more than ``most_s``."""
        now = self._elapsed_s()
        turn = max(self._next.get(key, now - self._ahead_s), now - self._ahead_s)
        if turn - now > max_s:
            return None
        self._next[key] = turn + self._gap_s
        self._next.move_to_end(key)
        while len(self._next) > KEPT:
            self._next.popitem(last=False)
        return max(0.0, turn - now)

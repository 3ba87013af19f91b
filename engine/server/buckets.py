"""How often somebody may: token buckets in this process's memory, bounded, on the injected clock.

The library `limits` was tried: its memory store counts by the machine's clock, which no test can turn, and starts a thread per
hit to forget; a bucket is twenty lines.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

#: Buckets kept; the one that was longest untouched is forgotten, and begins full again.
KEPT = 50_000


@dataclass(slots=True)
class _Bucket:
    left: float
    at_s: float


class Buckets:
    """A bucket for each name, of ``size`` that fill up again in ``fill_s`` seconds."""

    def __init__(self, size: int, fill_s: float, elapsed_s: Callable[[], float]) -> None:
        self.size = size
        self._per_s = size / fill_s
        self._elapsed_s = elapsed_s
        self._kept: OrderedDict[str, _Bucket] = OrderedDict()

    def _bucket(self, name: str) -> _Bucket:
        now = self._elapsed_s()
        bucket = self._kept.get(name)
        if bucket is None:
            bucket = self._kept[name] = _Bucket(self.size, now)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(name)
        bucket.left = min(self.size, bucket.left + (now - bucket.at_s) * self._per_s)
        bucket.at_s = now
        return bucket

    def take(self, name: str) -> float:
        """Take one; give 0, or how many seconds to wait until there is one."""
        bucket = self._bucket(name)
        if bucket.left < 1:
            return max(0.001, (1 - bucket.left) / self._per_s)
        bucket.left -= 1
        return 0.0

    def empty(self, name: str) -> float:
        """Give how many seconds to wait until there is one; 0 when there is. Takes nothing, remembers nothing."""
        bucket = self._kept.get(name)
        if bucket is None:
            return 0.0
        left = bucket.left + (self._elapsed_s() - bucket.at_s) * self._per_s
        return 0.0 if left >= 1 else max(0.001, (1 - left) / self._per_s)

    def left(self, name: str) -> int:
        """Give how many are left."""
        return int(self._bucket(name).left)

    def __len__(self) -> int:
        return len(self._kept)

"""The instants within the look-ahead, in a heap: what lets a node tick on the millisecond without claiming early."""

import heapq


class Horizon:
    """Instants (µs) that were read up to ``until``; nothing is known beyond."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self.until = 0

    def read(self, instants: list[int], until: int) -> None:
        """Replace what is known."""
        self._heap = sorted(set(instants))
        self.until = until

    def add(self, instant: int | None) -> None:
        """Remember one more instant, when it lies within the look-ahead."""
        if instant is not None and instant <= self.until:
            heapq.heappush(self._heap, instant)

    def more(self, now: int) -> None:
        """Remember that more has come than was taken."""
        heapq.heappush(self._heap, now)

    def due(self, now: int) -> bool:
        """Whether an instant has come; those that have are forgotten."""
        found = False
        while self._heap and self._heap[0] <= now:
            heapq.heappop(self._heap)
            found = True
        return found

    @property
    def next(self) -> int | None:
        """The earliest instant known."""
        return self._heap[0] if self._heap else None

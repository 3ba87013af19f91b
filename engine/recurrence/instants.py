"""Instants named one by one, as a Recurrence."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime

from lodger.engine.recurrence.instant import format_instant


class Instants:
    """A finite set of aware UTC instants."""

    def __init__(self, instants: Iterable[datetime]) -> None:
        self.instants = sorted(set(instants))

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """First slot after the instant (or at it, when inclusive)."""
        i = (bisect_left if inclusive else bisect_right)(self.instants, instant)
        return self.instants[i] if i < len(self.instants) else None

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Last slot before the instant (or at it, when inclusive)."""
        i = (bisect_right if inclusive else bisect_left)(self.instants, instant)
        return self.instants[i - 1] if i else None

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Slots in [start, end), ascending."""
        yield from self.instants[bisect_left(self.instants, start) : bisect_left(self.instants, end)]

    def text(self) -> str:
        """Name them all."""
        return f"Once, at {', '.join(map(format_instant, self.instants))}"

    def proves_never(self) -> str | None:
        """Say that there is none, when there is none."""
        return None if self.instants else "it names no instant"

    def ends(self) -> bool:
        """With the last."""
        return True

    def shifted(self, slot: datetime) -> bool:
        """No: they have no wall clock."""
        return False

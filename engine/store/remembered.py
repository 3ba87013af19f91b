"""A recurrence that remembers what it has answered: a tick, the claim after it and the next tick ask much the same."""

from collections.abc import Iterator
from datetime import datetime

from lodger.engine.recurrence.rule import Density, Measured

#: Answers kept: as many as a tick and the claim after it ask for.
KEPT = 4


class Remembered:
    """Answers as the recurrence in it does, which never changes: the slot after an instant is that after all up to that slot."""

    __slots__ = ("_inner", "_spans")

    def __init__(self, inner: Measured) -> None:
        self._inner = inner
        #: (instant, the slot after it or None): no slot lies between them. Replaced as a whole, so that threads may share it.
        self._spans: tuple[tuple[datetime, datetime | None], ...] = ()

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """First slot after the instant (or at it, when inclusive)."""
        if inclusive:
            return self._inner.next_after(instant, inclusive=True)
        for since, slot in self._spans:
            if since <= instant and (slot is None or instant < slot):
                return slot
        found = self._inner.next_after(instant)
        self._spans = ((instant, found), *self._spans[: KEPT - 1])
        return found

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Last slot before the instant (or at it, when inclusive)."""
        return self._inner.previous_before(instant, inclusive=inclusive)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Slots in [start, end), ascending, lazily."""
        return self._inner.between(start, end)

    def text(self) -> str:
        """One exact English sentence."""
        return self._inner.text()

    def proves_never(self) -> str | None:
        """Give the reason why there is no slot, or None when there is one."""
        return self._inner.proves_never()

    def ends(self) -> bool:
        """Whether the slots are finite."""
        return self._inner.ends()

    def shifted(self, slot: datetime) -> bool:
        """Whether DST moved this slot away from its written local time."""
        return self._inner.shifted(slot)

    def density(self, since: datetime | None = None, *, gap_only: bool = False) -> Density:
        """How often it fires at most from an instant on."""
        return self._inner.density(since, gap_only=gap_only)

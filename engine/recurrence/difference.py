"""Slots of a range that a new schedule drops and adds, compared with the old one."""

from dataclasses import dataclass
from datetime import datetime

from lodger.engine.recurrence.instant import LAST
from lodger.engine.recurrence.rule import Answer, Recurrence
from lodger.engine.recurrence.search import SearchedTo


@dataclass(frozen=True, slots=True)
class Difference:
    """Slots in [start, complete_to) that only the old or only the new schedule has, ascending.

    Attributes:
        complete_to: the range's end, or the slot at which ``at_most`` slots had been compared, or how far a schedule that
            names none could be searched.
    """

    dropped: tuple[datetime, ...]
    added: tuple[datetime, ...]
    complete_to: datetime


def difference(
    old: Recurrence, new: Recurrence, start: datetime, end: datetime, *, at_most: int = 10_000
) -> Difference:
    """Compare two schedules over [start, end), looking at no more than ``at_most`` slots."""
    dropped: list[datetime] = []
    added: list[datetime] = []
    one, two = _Cursor(old, start), _Cursor(new, start)
    for _ in range(at_most):
        slot = min(one.at, two.at)
        if slot >= end or not (one.is_slot if one.at == slot else two.is_slot):
            return Difference(tuple(dropped), tuple(added), min(slot, end))
        if one.at != two.at:
            (dropped if one.at == slot else added).append(slot)
        for cursor in (one, two):
            if cursor.at == slot:
                cursor.advance()
    return Difference(tuple(dropped), tuple(added), min(one.at, two.at, end))


class _Cursor:
    """The next slot of a recurrence, or how far it was searched."""

    def __init__(self, recurrence: Recurrence, start: datetime) -> None:
        self._recurrence = recurrence
        self._take(recurrence.next_after(start, inclusive=True))

    def advance(self) -> None:
        """Move the cursor to the next slot, or search on from where it stopped."""
        self._take(self._recurrence.next_after(self.at))

    def _take(self, found: Answer) -> None:
        """Move the cursor to a found slot, or to where a bounded search stopped."""
        self.is_slot = isinstance(found, datetime)
        self.at = found.instant if isinstance(found, SearchedTo) else found or LAST

"""Slots of a range that a new schedule drops and adds, compared with the old one."""

from dataclasses import dataclass
from datetime import datetime

from lodger.engine.recurrence.instant import LAST
from lodger.engine.recurrence.rule import Recurrence
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
    recurrences = old, new
    answers = [each.next_after(start, inclusive=True) for each in recurrences]
    only: tuple[list[datetime], list[datetime]] = [], []
    while True:
        places = [each.instant if isinstance(each, SearchedTo) else each or LAST for each in answers]
        slot = min(places)
        nearest = [i for i in (0, 1) if places[i] == slot]
        if not at_most or slot >= end or any(isinstance(answers[i], SearchedTo) for i in nearest):
            return Difference(tuple(only[0]), tuple(only[1]), min(slot, end))
        at_most -= 1
        if len(nearest) == 1:
            only[nearest[0]].append(slot)
        for i in nearest:
            answers[i] = recurrences[i].next_after(slot)

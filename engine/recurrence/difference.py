"""What an edit would change: the slots of a range that a new schedule drops and adds."""

from dataclasses import dataclass
from datetime import datetime

from lodger.engine.recurrence.rule import Recurrence


@dataclass(frozen=True, slots=True)
class Difference:
    """Slots in [start, complete_to) that only the old or only the new schedule has, ascending.

    Attributes:
        complete_to: the range's end, or the slot at which ``at_most`` slots had been compared.
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
    one, two = old.next_after(start, inclusive=True), new.next_after(start, inclusive=True)
    for _ in range(at_most):
        slot = min((each for each in (one, two) if each is not None), default=end)
        if slot >= end:
            return Difference(tuple(dropped), tuple(added), end)
        if one != two:
            (dropped if one == slot else added).append(slot)
        if one == slot:
            one = old.next_after(slot)
        if two == slot:
            two = new.next_after(slot)
    reached = min((each for each in (one, two) if each is not None), default=end)
    return Difference(tuple(dropped), tuple(added), min(reached, end))

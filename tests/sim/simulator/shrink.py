"""Shortening of the plan of a world that broke a law, by delta debugging (Zeller and Hildebrandt, 2002) over its events.

A shorter world may break another law for another reason; only the same law counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.sim.simulator.laws import Broken
from tests.sim.simulator.plan import Plan, PlannedEvent

#: Plays a plan; returns the broken law and the second, or None.
Play = Callable[[Plan], "tuple[Broken, float] | None"]


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A shorter plan that breaks the same law.

    Attributes:
        tried: number of worlds played.
        whole: whether no further event can be removed; False if the time limit was reached.
    """

    plan: Plan
    broken: Broken
    tried: int
    whole: bool


def shorten(plan: Plan, broken: Broken, at_s: float, play: Play, enough: Callable[[], bool]) -> Shrunk:
    """Return the plan without the events that are not needed to break the law.

    Args:
        broken: the law that it broke, in second ``at_s``.
        enough: called before each try; True ends the search.
    """
    search = _Search(plan, broken, play, enough)
    search.attempt([each for each in plan.events if each.at_s <= at_s])
    size = max(1, len(search.plan.events) // 2)
    while not search.over:
        shorter = search.sweep(size)
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    return Shrunk(search.plan, search.broken, search.tried, not search.over)


class _Search:
    def __init__(self, plan: Plan, broken: Broken, play: Play, enough: Callable[[], bool]) -> None:
        self.plan, self.broken = plan, broken
        self._play, self._enough = play, enough
        self.tried = 0
        self.over = False

    def attempt(self, events: list[PlannedEvent]) -> bool:
        """Play with these events only, keep them if they break the law, and return whether they do."""
        self.over = self._enough()
        if self.over:
            return False
        self.tried += 1
        found = self._play(self.plan.only(events))
        if found is None or found[0].law != self.broken.law:
            return False
        self.plan, self.broken = self.plan.only(events), found[0]
        return True

    def sweep(self, size: int) -> bool:
        """Try to remove each range of that size; return whether one was removed."""
        shorter, at = False, 0
        while at < len(self.plan.events) and not self.over:
            left = list(self.plan.events)
            del left[at : at + size]
            if self.attempt(left):
                shorter = True
            else:
                at += size
        return shorter

"""The step counter that bounds the work of a question, and the answer of a search that ran out of steps."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from collections.abc import Sequence as Items
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

#: Most steps of a question. A step is a bounded piece of work: a year, a period, a unit or a closed slot looked at.
MAX_STEPS = 2000
#: Most steps of the search when a schedule is saved.
SAVE_STEPS = 20_000
#: Steps that one of several sequences takes before the others have their turn.
_TURN = 100

#: Local seconds, UTC seconds or instants.
T = TypeVar("T", int, datetime)


@dataclass(frozen=True, slots=True)
class SearchedTo:
    """The answer of a search that ran out of steps.

    Attributes:
        instant: no slot lies between the question and this instant; it may be a slot itself.
        why: the exclusion that removed the most slots on the way, in words; None if none removed any.
    """

    instant: datetime
    why: str | None = None


class OutOfSteps(Exception):
    """A search has used all its steps.

    Attributes:
        reached: no member lies between the question and here; here may be one. A local second, a UTC second or an
            instant, as the question was.
    """

    def __init__(self, reached: Any) -> None:
        super().__init__(reached)
        self.reached = reached


class Steps:
    """The steps that are left to a search."""

    __slots__ = ("left",)

    def __init__(self, limit: int = MAX_STEPS) -> None:
        self.left = limit

    def take(self, reached: int | datetime) -> None:
        """Count a step of a bounded search.

        Args:
            reached: where the search is.

        Raises:
            OutOfSteps: none is left.
        """
        self.left -= 1
        if self.left < 0:
            raise OutOfSteps(reached)


class Sequence(Protocol[T]):
    """An ascending set that is asked for the neighbours of a position."""

    def next_from(self, at: T, steps: Steps) -> T | None:
        """First member at or after a position."""

    def last_to(self, at: T, steps: Steps) -> T | None:
        """Last member at or before a position."""


class Listed(Generic[T]):
    """Members that are named one by one."""

    def __init__(self, members: Iterable[T]) -> None:
        self.members: list[T] = sorted(set(members))

    def next_from(self, at: T, steps: Steps) -> T | None:
        """First member at or after a position."""
        i = bisect_left(self.members, at)
        return self.members[i] if i < len(self.members) else None

    def last_to(self, at: T, steps: Steps) -> T | None:
        """Last member at or before a position."""
        i = bisect_right(self.members, at)
        return self.members[i - 1] if i else None


class Merge(Generic[T]):
    """The union of sequences within one question, in one direction.

    Each sequence keeps its nearest member, or how far it has been searched. Only the nearest of them is asked, for a few
    steps at a time, so that a sequence without members does not hold up the others.
    """

    __slots__ = ("_at", "_forward", "_found", "_sources")

    def __init__(self, sources: Items[Sequence[T]], at: T, *, forward: bool = True) -> None:
        self._sources: Items[Sequence[T]] = sources
        self._forward = forward
        self._at: list[T | None] = [at] * len(sources)  # None: no member is left
        self._found = [False] * len(sources)

    def nearest(self, at: T, steps: Steps) -> T | None:
        """First member at or after a position, or last at or before it; positions of a question only advance.

        Raises:
            OutOfSteps: with a position in the direction of the search.
        """
        forward, places, found = self._forward, self._at, self._found
        for i, place in enumerate(places):
            if place is not None and (place < at if forward else place > at):
                places[i], found[i] = at, False
        while True:
            nearest, which = None, -1
            for i, place in enumerate(places):
                if place is not None and (nearest is None or (place < nearest if forward else place > nearest)):
                    nearest, which = place, i
            if nearest is None or found[which]:
                return nearest
            steps.take(nearest)
            turn = min(_TURN, max(2, steps.left // (len(places) + 1)), steps.left)
            share = Steps(turn)
            ask = self._sources[which].next_from if forward else self._sources[which].last_to
            try:
                places[which], found[which] = ask(nearest, share), True
                steps.left -= turn - share.left
            except OutOfSteps as out:
                places[which] = out.reached
                steps.left -= turn


def nearest(sources: Items[Sequence[T]], at: T, steps: Steps, *, forward: bool = True) -> T | None:
    """First member of a union at or after a position, or last at or before it."""
    if len(sources) == 1:
        return sources[0].next_from(at, steps) if forward else sources[0].last_to(at, steps)
    return Merge(sources, at, forward=forward).nearest(at, steps)

"""The step counter that bounds the work of a question, and the answer of a search that ran out of steps."""

from bisect import bisect_left
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
    """An ascending set that is asked for its members after a position."""

    def next_from(self, at: T, steps: Steps) -> T | None:
        """First member at or after a position."""


class Listed(Generic[T]):
    """Members that are named one by one."""

    def __init__(self, members: Iterable[T]) -> None:
        self.members: list[T] = sorted(set(members))

    def next_from(self, at: T, steps: Steps) -> T | None:
        """First member at or after a position."""
        i = bisect_left(self.members, at)
        return self.members[i] if i < len(self.members) else None


class Merge(Generic[T]):
    """The union of sequences within one question.

    Each sequence keeps its next member, or how far it has been searched. Only the nearest of them is asked, for a few
    steps at a time, so that a sequence without members does not hold up the others.
    """

    __slots__ = ("_at", "_found", "_sources")

    def __init__(self, sources: Items[Sequence[T]], at: T) -> None:
        self._sources: Items[Sequence[T]] = sources
        self._at: list[T | None] = [at] * len(sources)  # None: no member is left
        self._found = [False] * len(sources)

    def next_from(self, at: T, steps: Steps) -> T | None:
        """First member at or after a position; positions of a question only advance.

        Raises:
            OutOfSteps: with a position.
        """
        places, found = self._at, self._found
        for i, place in enumerate(places):
            if place is not None and place < at:
                places[i], found[i] = at, False
        while True:
            nearest, which = None, -1
            for i, place in enumerate(places):
                if place is not None and (nearest is None or place < nearest):
                    nearest, which = place, i
            if nearest is None or found[which]:
                return nearest
            steps.take(nearest)
            turn = min(_TURN, max(2, steps.left // (len(places) + 1)), steps.left)
            share = Steps(turn)
            try:
                places[which], found[which] = self._sources[which].next_from(nearest, share), True
                steps.left -= turn - share.left
            except OutOfSteps as out:
                places[which] = out.reached
                steps.left -= turn


def union_of(sources: Items[Sequence[T]], at: T) -> Sequence[T]:
    """Return the union of sequences, to be asked one question from a position on."""
    return sources[0] if len(sources) == 1 else Merge(sources, at)

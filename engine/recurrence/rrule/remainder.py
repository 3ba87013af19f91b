"""One rule minus exception rules, as rules again.

Each exception is brought into the form of days × times relative to the rule: one with long steps is, for a given time of
day, a set of days; one whose steps differ from the rule's own is met by every so many steps of the rule. Where UNTIL or
COUNT ends an exception a new stretch of time begins. What cannot be brought into that form is asked for each slot, and
then it is proved that few slots in a row are taken away by it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Protocol

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.blocks import Block, Step
from lodger.engine.recurrence.rrule.leftover import TooMany, left_of
from lodger.engine.recurrence.rrule.pieces import Piece, covered, demand_few_in_a_row, pieces_of, within
from lodger.engine.recurrence.rrule.relative import Taken, as_days, normal
from lodger.engine.recurrence.rrule.sequence import RuleSequence

#: Days in all after which long steps come to the same times again: each of them is looked at when a piece is made.
_MOST_DRIFT = 400_000


class Source(Protocol):
    """A sequence of local seconds without bounds."""

    def next(self, local: int) -> int | None:
        """First member from this second on."""
        ...

    def previous(self, local: int) -> int | None:
        """Last member up to this second."""
        ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time in which the same exceptions hold; ``whole`` when none does.

    Attributes:
        first, last: local seconds, both inside.
        loose: exceptions that are asked for each slot.
    """

    first: int
    last: int
    whole: Source | None
    pieces: tuple[Piece, ...] = ()
    loose: tuple[RuleSequence, ...] = ()

    def next(self, local: int) -> int | None:
        """First member from this second on."""
        local = max(local, self.first)
        while local <= self.last:
            found = self._next(local)
            if found is None or found > self.last:
                return None
            if not self.loose or not covered(found, self.loose):
                return found
            local = found + 1
        return None

    def _next(self, local: int) -> int | None:
        if self.whole is not None:
            return self.whole.next(local)
        found = None
        for piece in self.pieces:
            each = piece.next(local)
            if each is not None and (found is None or each < found):
                found = each
        return found

    def previous(self, local: int) -> int | None:
        """Last member up to this second."""
        local = min(local, self.last)
        while local >= self.first:
            found = self._previous(local)
            if found is None or found < self.first:
                return None
            if not self.loose or not covered(found, self.loose):
                return found
            local = found - 1
        return None

    def _previous(self, local: int) -> int | None:
        if self.whole is not None:
            return self.whole.previous(local)
        found = None
        for piece in self.pieces:
            each = piece.previous(local)
            if each is not None and (found is None or each > found):
                found = each
        return found


class Remainder:
    """Members between two local seconds that are not taken away.

    Args:
        mine: the members as blocks; None when they are too many blocks, which is as good as long as nothing is taken away.
        whole: the same members as a sequence.
        first, last: local seconds, both inside.
        taken: what is taken away.

    Raises:
        TooMany: it cannot be said in few enough pieces, or not that few slots in a row are taken away.
    """

    def __init__(
        self, mine: Sequence[Block] | None, whole: Source, first: int, last: int, taken: Sequence[Taken]
    ) -> None:
        self.blocks = mine
        self.first, self.last = first, last
        self.stretches: list[Stretch] = []
        cuts = {first}
        for each in taken:
            cuts |= {max(each.first, first), max(each.last + 1, first)}
        # What was asked last, and the member found: rules are asked many times over when others have nearer members.
        self._ahead, self._behind = (1, 0), (0, 1)
        self._begins = sorted(cut for cut in cuts if cut <= last)
        drift = 0
        for begin, after in zip(self._begins, [*self._begins[1:], last + 1], strict=False):
            there = [each for each in taken if each.first <= begin and each.last >= after - 1]
            stretch = _stretch(mine, whole, there, begin, after - 1)
            drift += sum(_drift(piece.step) for piece in stretch.pieces)
            if drift > _MOST_DRIFT:
                raise TooMany
            self.stretches.append(stretch)

    def next_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """First member after (or at) the local second."""
        local += not inclusive
        asked, member = self._ahead
        if asked <= local <= member:
            return member
        for stretch in self.stretches[max(0, bisect_right(self._begins, local) - 1) :]:
            found = stretch.next(local)
            if found is not None:
                self._ahead = (local, found)
                return found
        return None

    def previous_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """Last member before (or at) the local second."""
        local -= not inclusive
        asked, member = self._behind
        if member <= local <= asked:
            return member
        for stretch in reversed(self.stretches[: bisect_right(self._begins, local)]):
            found = stretch.previous(local)
            if found is not None:
                self._behind = (local, found)
                return found
        return None


def _drift(step: Step | None) -> int:
    """After how many days steps come to the same times of day."""
    return 0 if step is None else step.n // gcd(step.n, civil.DAY_S // step.unit_s)


def _stretch(mine: Sequence[Block] | None, whole: Source, taken: Sequence[Taken], first: int, last: int) -> Stretch:
    if not taken:
        return Stretch(first, last, whole)
    if mine is None:
        raise TooMany
    pieces: list[Piece] = []
    loose: dict[int, RuleSequence] = {}
    for block in mine:
        made, asked = _first_way(block, taken, first, last)
        pieces += made
        loose |= {id(each): each for each in asked}
    return Stretch(first, last, None, within(pieces, first, last), tuple(loose.values()))


def _first_way(block: Block, taken: Sequence[Taken], first: int, last: int) -> tuple[list[Piece], list[RuleSequence]]:
    """Pieces and what is asked for each slot, by the first way that leads to an end."""
    try:
        return _taken_apart(block, taken, first, last, listed=False)
    except TooMany:
        if block.step is None:
            return _taken_apart(block, taken, first, last, listed=True)
    pieces: list[Piece] = []
    asked: list[RuleSequence] = []
    days = as_days(block, block.times)
    if days is None:
        raise TooMany
    for part in days:
        more, one_by_one = _taken_apart(part, taken, first, last, listed=True)
        pieces += more
        asked += one_by_one
    return pieces, asked


def _taken_apart(
    block: Block, taken: Sequence[Taken], first: int, last: int, *, listed: bool
) -> tuple[list[Piece], list[RuleSequence]]:
    """Pieces of a block and the exceptions that are asked for each slot; ``listed``: long steps become sets of days."""
    pieces: list[Piece] = []
    asked: list[RuleSequence] = []
    years = range(civil.civil(first // civil.DAY_S)[0], civil.civil(last // civil.DAY_S)[0] + 1)
    for part, steady, unsaid in normal(block, taken, listed=listed):
        lefts = left_of(part, steady, years)
        if _drift(part.step) * len(lefts) > _MOST_DRIFT:
            raise TooMany
        made = [piece for left in lefts for piece in pieces_of(part, left)]
        for left in lefts:
            if left.sorter is not None:
                left.sorter.settle()
        if unsaid:
            demand_few_in_a_row(made, unsaid, (first, last))
        pieces += made
        asked += unsaid
    return pieces, asked

"""One rule minus exception rules, as rules again.

Each exception is brought into the form of days × times relative to the rule: one with long steps is, for a given time of
day, a set of days; one whose steps differ from the rule's own is met by every so many steps of the rule. Where UNTIL or
COUNT ends an exception a new stretch of time begins. What cannot be brought into that form is asked for each slot, and
then it is proved that few slots in a row are taken away by it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.blocks import Block, blocks_of
from lodger.engine.recurrence.rrule.leftover import TooMany, left_of
from lodger.engine.recurrence.rrule.pieces import Piece, covered, demand_few_in_a_row, pieces_of
from lodger.engine.recurrence.rrule.relative import Taken, as_days, normal
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.set_positions import SetPositions
from lodger.engine.recurrence.rrule.unit_times import UnitTimes


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time in which the same exceptions hold; ``whole`` when none does.

    Attributes:
        first, last: local seconds, both inside.
        loose: exceptions that are asked for each slot.
    """

    first: int
    last: int
    whole: UnitTimes | SetPositions | None
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
            each = piece.source.next(local)
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
            each = piece.source.previous(local)
            if each is not None and (found is None or each > found):
                found = each
        return found


class Remainder:
    """Members of a rule, its head aside, that no exception has; between ``start`` and ``until`` of the rule.

    Raises:
        TooMany: it cannot be said in few enough pieces, or not that few slots in a row are taken away.
    """

    def __init__(
        self, rule: RuleSequence, exceptions: Sequence[RuleSequence], later: Sequence[Block] = (), later_from: int = 0
    ) -> None:
        """Take exceptions away, and from some local second on further blocks."""
        self.rule = rule
        self.stretches: list[Stretch] = []
        active = [each for each in exceptions if each.base is not None and each.start <= each.until]
        cuts = {rule.start}
        for each in active:
            cuts |= {max(each.start, rule.start), max(each.until + 1, rule.start)}
        if later:
            cuts.add(max(later_from, rule.start))
        begins = sorted(cut for cut in cuts if cut <= rule.until)
        for first, after in zip(begins, [*begins[1:], rule.until + 1], strict=False):
            there = [each for each in active if each.start <= first and each.until >= after - 1]
            more = later if first >= later_from else ()
            self.stretches.append(_stretch(rule, there, more, first, after - 1))
        self._begins = begins

    def next_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """First member after (or at) the local second."""
        local += not inclusive
        for stretch in self.stretches[max(0, bisect_right(self._begins, local) - 1) :]:
            found = stretch.next(local)
            if found is not None:
                return found
        return None

    def previous_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """Last member before (or at) the local second."""
        local -= not inclusive
        for stretch in reversed(self.stretches[: bisect_right(self._begins, local)]):
            found = stretch.previous(local)
            if found is not None:
                return found
        return None


def _stretch(
    rule: RuleSequence, exceptions: Sequence[RuleSequence], more: Sequence[Block], first: int, last: int
) -> Stretch:
    taken: list[Taken] = [(block, rule) for block in more]
    for each in exceptions:
        blocks = blocks_of(each)
        taken += [(None, each)] if blocks is None else [(block, each) for block in blocks]
    mine = blocks_of(rule)
    if not taken:
        return Stretch(first, last, rule.base)
    if mine is None:
        raise TooMany
    pieces: list[Piece] = []
    loose: dict[int, RuleSequence] = {}
    for block in mine:
        made, asked = _first_way(block, taken, first, last)
        pieces += made
        loose |= {id(each): each for each in asked}
    return Stretch(first, last, None, tuple(pieces), tuple(loose.values()))


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
        made = [piece for left in lefts for piece in pieces_of(part, left)]
        for left in lefts:
            if left.sorter is not None:
                left.sorter.settle()
        if unsaid:
            demand_few_in_a_row(made, unsaid, (first, last))
        pieces += made
        asked += unsaid
    return pieces, asked

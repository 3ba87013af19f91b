"""What exceptions leave of a rule on one class of days, as a sequence; and that few of its slots in a row are asked about.

Exceptions whose steps drift against the rule's own are asked for each slot: here it is proved that this ends soon.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import gcd

from lodger.engine.recurrence import civil, timeset
from lodger.engine.recurrence.meter import US, spend
from lodger.engine.recurrence.rrule.blocks import Block, Step, second_bits, times_of
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.leftover import Left, TooMany
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.unit_times import UnitTimes

#: Into so many sequences a rule with steps is taken apart at most.
MOST_STEPS = 24
#: Slots in a row that exceptions which are asked one by one may take away.
_MOST_IN_A_ROW = 60
#: Members of a rule that are looked at one by one when nothing else proves that.
_WALKED = 2000
#: What one of these is, and asking one exception for it, in microseconds.
_STEP, _ASKED = 6, 5


@dataclass(frozen=True, slots=True)
class Piece:
    """What is left of a rule on one class of days.

    Attributes:
        source: its members.
        times: bits of the seconds of a day at which it can have members.
        step: when not every of its days has all the times.
        low, high: no member comes before, or after, local seconds that are members themselves once it is :func:`within` bounds.
    """

    source: UnitTimes
    times: int
    step: Step | None
    low: int = civil.MIN_LOCAL
    high: int = civil.MAX_LOCAL
    #: Two members and two seconds before, and after, them without a member between: one question asks many times over.
    _kept: list[tuple[int, int]] = field(default_factory=lambda: [(1, 0), (0, 1)], compare=False)

    def next(self, local: int) -> int | None:
        """First member from this second on."""
        if local > self.high:
            return None
        if local <= self.low > civil.MIN_LOCAL:
            return self.low
        asked, member = self._kept[0]
        if asked <= local <= member:
            return member
        found = self.source.next(local)
        if found is not None:
            self._kept[0] = (local, found)
        return found

    def previous(self, local: int) -> int | None:
        """Last member up to this second."""
        if local < self.low:
            return None
        if local >= self.high < civil.MAX_LOCAL:
            return self.high
        asked, member = self._kept[1]
        if member <= local <= asked:
            return member
        found = self.source.previous(local)
        if found is not None:
            self._kept[1] = (local, found)
        return found


def within(pieces: Iterable[Piece], first: int, last: int) -> tuple[Piece, ...]:
    """Those that have members between two local seconds, both inside, each with the first and last of them.

    A question then never looks for a piece's members beyond these, where there may be none for thousands of years.
    """
    found = []
    for piece in pieces:
        low = piece.source.next(first)
        if low is not None and low <= last:
            high = piece.source.previous(last)
            assert high is not None
            found.append(Piece(piece.source, piece.times, piece.step, low, high))
    return tuple(found)


def covered(local: int, rules: Iterable[RuleSequence]) -> bool:
    """Whether one of the rules has the local second."""
    return any(rule.next_local(local, inclusive=True) == local for rule in rules)


def pieces_of(block: Block, left: Left) -> list[Piece]:
    """Sequences of the times that are left on one class of days; several when units are left with different times."""
    step = block.step
    if step is None:
        return [Piece(UnitTimes(left.days(block.phase), civil.DAY_S, times_of(left.times)), left.times, None)]
    by_table: dict[bytes, list[int]] = {}
    flags = timeset.flags_of(left.times, civil.DAY_S)
    for offset in timeset.listed(step.inside.bits()):
        by_table.setdefault(flags[offset :: step.unit_s], []).append(offset)
    if len(by_table) > MOST_STEPS:
        raise TooMany
    found = []
    for table, offsets in by_table.items():
        steps = ClockSteps(None, table, step.n, step.origin, left.days)
        if not steps.never:
            inside = times_of(sum(1 << offset for offset in offsets))
            times = second_bits(steps.reachable(), steps.units, inside)
            part = replace(step, table=table, inside=inside)
            found.append(Piece(UnitTimes(steps, step.unit_s, inside), times, part))
    return found


def demand_few_in_a_row(pieces: Sequence[Piece], loose: Sequence[RuleSequence], within: tuple[int, int]) -> None:
    """Raise TooMany unless it is proved that few slots in a row are taken away by the exceptions."""
    steps = all(isinstance(rule.base, UnitTimes) and isinstance(rule.base.steps, ClockSteps) for rule in loose)
    few = 2 * len(loose) <= _MOST_IN_A_ROW
    for piece in pieces:
        if few and steps:
            if piece.step is None and _never_two_of(len(loose) + 1, timeset.listed(piece.times), loose):
                continue
            if piece.step is not None and _in_step(piece, piece.step, loose):
                continue
        if steps and _fewer_a_day(piece, loose):
            continue
        if not _walked(piece, loose, *within):
            raise TooMany


def _in_step(piece: Piece, step: Step, loose: Sequence[RuleSequence]) -> bool:
    """Whether the piece has more steps one after another, wherever it has some, than exceptions can take away."""
    neighbours, mine = len(loose) + 1, step.n * step.unit_s
    theirs = [each.rule.interval * _unit_s(each) for each in loose]
    if step.inside.size > 1 or min(each // gcd(each, mine) for each in theirs) < neighbours:
        return False
    days = piece.source.days
    if 0 not in step.table and isinstance(days, Days) and days.allowed.total() == civil.CYCLE_DAYS:
        return days.phase is None or step.n > len(step.table)
    return min(len(run) for run in step.table.split(b"\0") if run) >= neighbours * step.n


def _fewer_a_day(piece: Piece, loose: Sequence[RuleSequence]) -> bool:
    """Whether the exceptions have fewer members on any day than the piece has on each of its days."""
    most = 0
    for rule in loose:
        assert isinstance(rule.base, UnitTimes)
        assert isinstance(rule.base.steps, ClockSteps)
        most += (rule.base.steps.units // rule.base.steps.n + 1) * rule.base.times.size
    step = piece.step
    if step is None:
        least = piece.times.bit_count()
    else:
        least = sum(len(run) // step.n for run in step.table.split(b"\0")) * step.inside.size
    return most < least and 2 * most <= _MOST_IN_A_ROW


def _walked(piece: Piece, loose: Sequence[RuleSequence], first: int, last: int) -> bool:
    """Whether the piece has few members in all, and few in a row are taken away."""
    row, local = 0, piece.source.next(first)
    for _ in range(_WALKED):
        if local is None or local > last:
            return True
        spend(US * (_STEP + _ASKED * len(loose)))
        row = row + 1 if covered(local, loose) else 0
        if row > _MOST_IN_A_ROW:
            return False
        local = piece.source.next(local + 1)
    return False


def _never_two_of(neighbours: int, times: list[int], loose: Sequence[RuleSequence]) -> bool:
    """Whether no exception has two of so many neighbouring times of a day, and there are so many.

    Then not all of them are taken away on any day, because there are fewer exceptions.
    """
    if len(times) < neighbours:
        return False
    distances = {b - a for n in range(1, neighbours) for a, b in zip(times, times[n:], strict=False)}
    for rule in loose:
        assert isinstance(rule.base, UnitTimes)
        step_s = rule.filled.interval * rule.base.unit_s
        offsets = timeset.listed(rule.base.times.bits())
        own = {(a - b) % step_s for a in offsets for b in offsets}
        if any(distance % step_s in own for distance in distances):
            return False
    return True


def _unit_s(rule: RuleSequence) -> int:
    assert isinstance(rule.base, UnitTimes)
    return rule.base.unit_s

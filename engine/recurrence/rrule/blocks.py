"""A rule as days × times of day: the form in which one rule is taken from another exactly.

BYSETPOS becomes blocks too: a position is a number of days from one end of its period and a time of day, so all positions
with one time are a set of days, and times with the same days are one block.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lodger.engine.recurrence import civil, timeset
from lodger.engine.recurrence.dial import highest, lowest
from lodger.engine.recurrence.rrule.clock_set import TimeList, Times
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.phase import Phase
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.set_positions import Bounds, SetPositions, days_between
from lodger.engine.recurrence.rrule.year_masks import span
from lodger.engine.recurrence.year_kinds import KindMasks

#: A rule that would be more blocks than that has positions beyond what anybody writes.
MOST_GROUPS = 24


@dataclass(frozen=True, slots=True)
class Step:
    """Steps of a sub-daily rule whose days are not all alike.

    Attributes:
        unit_s: seconds of a unit.
        n: INTERVAL in units.
        origin: unit number of one step.
        table: a byte per unit of the day, 1 where allowed.
        inside: offsets of members in their unit.
    """

    unit_s: int
    n: int
    origin: int
    table: bytes
    inside: Times


@dataclass(frozen=True, slots=True)
class Block:
    """Times of day on days; with a step only those of the times that a step meets.

    Attributes:
        allowed: the days.
        phase: which of them are selected; None for all.
        times: bits of the seconds of a day.
        step: None when every day has all the times.
    """

    allowed: KindMasks
    phase: Phase | None
    times: int
    step: Step | None = None


def blocks_of(rule: RuleSequence) -> list[Block] | None:
    """The blocks of a rule, its bounds and its head aside; None when BYSETPOS makes too many."""
    base = rule.base
    if base is None:
        return []
    if isinstance(base, SetPositions):
        return of_positions(base)
    steps = base.steps
    if isinstance(steps, Days):
        return [Block(steps.allowed, steps.phase, base.times.bits())]
    assert isinstance(steps, ClockSteps)
    assert isinstance(steps.days, Days)
    times = second_bits(steps.reachable(), steps.units, base.times)
    if steps.turn_days == 1:
        return [Block(steps.days.allowed, None, times)]
    step = Step(base.unit_s, steps.n, steps.origin, steps.table, base.times)
    return [Block(steps.days.allowed, None, times, step)]


def second_bits(positions: int, units: int, inside: Times) -> int:
    """Seconds of the day of the members in some units of a day."""
    if units == civil.DAY_S:
        return positions
    unit_s = civil.DAY_S // units
    each = timeset.flags_of(inside.bits(), unit_s)
    empty = bytes(unit_s)
    flags = timeset.flags_of(positions, units)
    return timeset.of_flags(b"".join(each if flag else empty for flag in flags))


class TimeBits:
    """Seconds of a day as one integer, for sets too large to list."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self.size = bits.bit_count()
        self.first, self.last = lowest(bits), highest(bits)

    def at_or_after(self, offset: int) -> int | None:
        """Smallest member not below the offset."""
        left = self._bits >> offset
        return offset + lowest(left) if left else None

    def at_or_before(self, offset: int) -> int | None:
        """Greatest member not above the offset."""
        left = self._bits & (2 << offset) - 1
        return highest(left) if left else None

    def up_to(self, offset: int) -> int:
        """How many members are not above the offset."""
        return (self._bits & (2 << offset) - 1).bit_count()

    def nth(self, index: int) -> int:
        """Member by 0-based index."""
        return timeset.listed(self._bits)[index]

    def bits(self) -> int:
        """All members as one integer, a bit each."""
        return self._bits


def times_of(bits: int) -> Times:
    """Seconds of a unit from their bits; at least one."""
    return TimeList(tuple(timeset.listed(bits))) if bits.bit_count() <= 2000 else TimeBits(bits)


class Chosen(KindMasks):
    """The n-th allowed days of periods; numbers count from 0, negative ones from the end (-1 is the last)."""

    def __init__(self, allowed: KindMasks, bounds: Bounds, numbers: Iterable[int]) -> None:
        super().__init__()
        self._allowed, self._bounds, self._numbers = allowed, bounds, tuple(numbers)

    def _compute(self, year: int) -> int:
        start, end = civil.year_start(year), civil.year_start(year + 1)
        kept, day = 0, start
        while day < end:
            first, after = self._bounds(day)
            days = days_between(self._allowed, first, after)
            for number in self._numbers:
                if -len(days) <= number < len(days):
                    kept |= span(days[number] - start, days[number] - start + 1) if start <= days[number] < end else 0
            day = after
        return kept


def of_positions(base: SetPositions) -> list[Block] | None:
    """The blocks of a rule with BYSETPOS; None when there are too many."""
    size = base.times.size
    numbers: dict[int, set[int]] = {}
    for position in base.bysetpos:
        day, nth = divmod(abs(position) - 1, size)
        if position > 0:
            numbers.setdefault(nth, set()).add(day)
        else:
            numbers.setdefault(size - 1 - nth, set()).add(-day - 1)
    groups: dict[frozenset[int], int] = {}
    for nth, days in numbers.items():
        groups[frozenset(days)] = groups.get(frozenset(days), 0) | 1 << base.times.nth(nth)
    if len(groups) > MOST_GROUPS:
        return None
    return [
        Block(Chosen(base.allowed, base.bounds, sorted(days)), base.days.phase, times) for days, times in groups.items()
    ]

"""What exceptions leave of a block, exactly: days are sorted by which times of day are left on them.

Each such class of days is a block of its own, with its own times, so that no question ever walks through what is taken
away. Approaches tried and dropped: walking from excluded slot to excluded slot, a run of seconds, hours or days at a time,
needs a proof that free slots come at short distances, and refuses sets for which there is none although they are simple.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import gcd, lcm

from lodger.engine.recurrence import civil, timeset
from lodger.engine.recurrence.dial import highest, lowest
from lodger.engine.recurrence.meter import spend
from lodger.engine.recurrence.rrule.blocks import Block
from lodger.engine.recurrence.rrule.days import Days, DaySet
from lodger.engine.recurrence.rrule.phase import Months, Phase, WeekYears, Years
from lodger.engine.recurrence.rrule.residues import Residues
from lodger.engine.recurrence.year_kinds import KINDS, YEAR_OF, Given, KindMasks

#: Classes of days beyond which a set is refused.
MOST_CLASSES = 64
#: Years whose classes are kept after a set has been read.
_KEPT = 64


class TooMany(Exception):
    """There are more classes of days than a question could look at."""


@dataclass(frozen=True, slots=True)
class Left:
    """Days of one class and the times left on them.

    Attributes:
        times: bits of the seconds of a day.
        allowed: the days when they are known for every kind of year; else ``sorter`` finds them.
    """

    times: int
    allowed: KindMasks | None
    sorter: "Sorter | None" = None

    def days(self, phase: Phase | None) -> DaySet:
        """The days that a phase selects."""
        if self.allowed is not None:
            return Days(self.allowed, phase)
        assert self.sorter is not None
        return SortedDays(self.sorter, self.times, phase)


def left_of(block: Block, taken: Sequence[Block], years: range) -> list[Left]:
    """Classes of days of a block after others without steps are taken away; days with nothing left are in none.

    Args:
        years: those in which it is asked for.

    Raises:
        TooMany: more than :data:`MOST_CLASSES` classes.
    """
    groups: dict[int, list[tuple[KindMasks, Phase | None]]] = {}
    for each in taken:
        bits = each.times & block.times
        related = relation(block.phase, each.phase) if bits else Relation.NEVER
        if related is not Relation.NEVER:
            groups.setdefault(bits, []).append((each.allowed, None if related is Relation.ALWAYS else each.phase))
    if any(phase is not None for days in groups.values() for _, phase in days):
        sorter = Sorter(block, groups, years)
        return [Left(times, None, sorter) for times in sorter.states if times]
    found: dict[int, list[int]] = {}
    for kind in range(KINDS):
        year = YEAR_OF[kind]
        parts = {block.times: block.allowed.mask(year)}
        for bits, days in groups.items():
            shut = 0
            for allowed, _ in days:
                shut |= allowed.mask(year)
            parts = _split(parts, bits, shut)
        for times, mask in parts.items():
            if times not in found and len(found) >= MOST_CLASSES:
                raise TooMany
            found.setdefault(times, [0] * KINDS)[kind] = mask
    return [Left(times, Given(by_kind)) for times, by_kind in found.items()]


def _split(parts: dict[int, int], bits: int, shut: int) -> dict[int, int]:
    """Take times away on some days; by what is left."""
    split: dict[int, int] = {}
    for times, mask in parts.items():
        if here := mask & shut:
            if left := times & ~bits:
                split[left] = split.get(left, 0) | here
            mask &= ~shut
        if mask:
            split[times] = split.get(times, 0) | mask
    return split


class Sorter:
    """Classes of days of a year when exceptions have an INTERVAL of their own in days, weeks, months or years."""

    def __init__(self, block: Block, groups: dict[int, list[tuple[KindMasks, Phase | None]]], years: range) -> None:
        self._allowed = block.allowed
        self._groups = list(groups.items())
        #: What can be left on a day; nothing at all may be among them.
        self.states = [block.times]
        self._moves: list[dict[int, int]] = [{} for _ in groups]
        phases = [phase.years for days in groups.values() for _, phase in days if phase is not None]
        self.years = lcm(400, *phases)
        self._kept: dict[int, dict[int, int]] = {}
        self._most_kept = civil.MAX_YEAR  # while the set is read
        self.asked = years
        work = 3 + sum(2 + work_of(phase) for days in groups.values() for _, phase in days)
        #: By state, which of the years that are asked for have a day of it, until they repeat; while the set is read.
        self.having: dict[int, list[int]] | None = {}
        for at, year in enumerate(years[: self.years]):  # so that every state is known
            parts = self.sorted(year)
            spend(work + len(parts) * len(groups) // 4)
            for state, days in parts.items():
                if days:
                    self.having.setdefault(state, []).append(at)

    def settle(self) -> None:
        """Let go of what only reading needs."""
        self._kept.clear()
        self.having = None
        self._most_kept = _KEPT

    def sorted(self, year: int) -> dict[int, int]:
        """Days of the year by the number of their state."""
        year = self.asked.start + (year - self.asked.start) % self.years
        parts = self._kept.get(year)
        if parts is None:
            parts = {0: self._allowed.mask(year)}
            for moves, (bits, days) in zip(self._moves, self._groups, strict=True):
                shut = 0
                for allowed, phase in days:
                    shut |= allowed.mask(year) if phase is None else allowed.mask(year) & phase.mask(year)
                split: dict[int, int] = {}
                for state, mask in parts.items():
                    if here := mask & shut:
                        left = moves.get(state)
                        if left is None:
                            left = moves[state] = self._state(self.states[state] & ~bits)
                        split[left] = split.get(left, 0) | here
                        mask &= ~shut
                    if mask:
                        split[state] = split.get(state, 0) | mask
                parts = split
            if len(self._kept) >= self._most_kept:
                self._kept.clear()
            self._kept[year] = parts
        return parts

    def _state(self, times: int) -> int:
        if times not in self.states:
            if len(self.states) > MOST_CLASSES:
                raise TooMany
            self.states.append(times)
        return self.states.index(times)


class SortedDays:
    """Days of one class; the years that have one are found when the set is read, so that no question looks for them."""

    def __init__(self, sorter: Sorter, times: int, phase: Phase | None) -> None:
        self._sorter, self.phase = sorter, phase
        self._state = sorter.states.index(times)
        self.years = sorter.years if phase is None else lcm(sorter.years, phase.years)
        asked = sorter.asked
        have = max(1, min(self.years, len(asked)))
        assert sorter.having is not None
        flags, places = bytearray(have), sorter.having.get(self._state, [])
        for turn in range(0, have, sorter.years):
            spend(len(places))
            for at in places:
                if turn + at < have and (phase is None or self.mask(asked[turn + at])):
                    flags[turn + at] = 1
        some = timeset.of_flags(bytes(flags))
        while have < len(asked):
            some |= some << have
            have *= 2
        #: Bit n: year n has a member, among the years that are asked for.
        self._some = (some & (1 << len(asked)) - 1) << asked.start

    def mask(self, year: int) -> int:
        """Bit n: day n of the year is a member."""
        days = self._sorter.sorted(year).get(self._state, 0)
        return days if self.phase is None or not days else days & self.phase.mask(year)

    def contains(self, day: int) -> bool:
        """Whether the day is a member."""
        year = civil.civil(day)[0]
        return bool(self.mask(year) >> (day - civil.year_start(year)) & 1)

    def next(self, day: int) -> int | None:
        """First member from this day on."""
        if day > civil.MAX_DAY:
            return None
        day = max(day, civil.MIN_DAY)
        year = civil.civil(day)[0]
        bits = self.mask(year) >> (day - civil.year_start(year))
        if bits:
            return day + lowest(bits)
        later = self._some >> year + 1
        if not later:
            return None
        year += 1 + lowest(later)
        return civil.year_start(year) + lowest(self.mask(year))

    def previous(self, day: int) -> int | None:
        """Last member up to this day."""
        if day < civil.MIN_DAY:
            return None
        day = min(day, civil.MAX_DAY)
        year = civil.civil(day)[0]
        bits = self.mask(year) & (2 << (day - civil.year_start(year))) - 1
        if bits:
            return civil.year_start(year) + highest(bits)
        earlier = self._some & (1 << year) - 1
        if not earlier:
            return None
        year = highest(earlier)
        return civil.year_start(year) + highest(self.mask(year))


def work_of(phase: Phase | None) -> int:
    """What a look at one year of a phase is, about in microseconds."""
    return 0 if phase is None else getattr(phase, "work", 1)


class Relation(Enum):
    """How the periods that one phase selects stand to those of another."""

    ALWAYS = "all are selected by the other too"
    NEVER = "none is"
    SOMETIMES = "some are"


def relation(mine: Phase | None, other: Phase | None) -> Relation:
    """Whether all, none or some of the periods that ``mine`` selects are selected by the other."""
    if other is None:
        return Relation.ALWAYS
    if isinstance(mine, Residues) and isinstance(other, Residues):
        common = gcd(mine.modulus, other.modulus)
        if common == other.modulus:
            theirs = frozenset(other.residues)
            hits = {residue % common in theirs for residue in mine.residues}
            return Relation.SOMETIMES if len(hits) > 1 else Relation.ALWAYS if True in hits else Relation.NEVER
        meet = {residue % common for residue in other.residues}
        return Relation.SOMETIMES if any(residue % common in meet for residue in mine.residues) else Relation.NEVER
    for sort in (Years, Months, WeekYears):
        if isinstance(mine, sort) and isinstance(other, sort):
            if isinstance(mine, WeekYears) and isinstance(other, WeekYears) and mine.wkst != other.wkst:
                return Relation.SOMETIMES
            apart = (mine.first - other.first) % gcd(mine.n, other.n)
            return Relation.NEVER if apart else Relation.ALWAYS if mine.n % other.n == 0 else Relation.SOMETIMES
    return Relation.SOMETIMES

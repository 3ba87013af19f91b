"""Wall-clock rules of any language as blocks of days × times, and such rules with times taken away."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lcm

from lodger.engine.recurrence.civil import DAY_S, MAX_LOCAL, MAX_YEAR, MIN_LOCAL, civil, year_start
from lodger.engine.recurrence.cron.rule import CronRule
from lodger.engine.recurrence.dial import highest, lowest
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.grid import Grid
from lodger.engine.recurrence.once import OnceLocal
from lodger.engine.recurrence.rrule.blocks import Block, Step, blocks_of
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.leftover import SortedDays, TooMany
from lodger.engine.recurrence.rrule.pieces import Piece
from lodger.engine.recurrence.rrule.relative import Taken
from lodger.engine.recurrence.rrule.remainder import Remainder, Source
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rule import DstPolicy, LocalSequence
from lodger.engine.recurrence.schyntax.rule import SchyntaxRule
from lodger.engine.recurrence.year_kinds import KindMasks
from lodger.engine.recurrence.yeardays import YearDays
from lodger.engine.recurrence.zones import Zone


class DaysOf(KindMasks):
    """Days that a function gives for any year of a kind."""

    def __init__(self, of_year: Callable[[int], int]) -> None:
        super().__init__()
        self._of_year = of_year

    def _compute(self, year: int) -> int:
        return self._of_year(year)


EVERY_DAY = DaysOf(lambda year: (1 << year_start(year + 1) - year_start(year)) - 1)


class Named:
    """Days of years that have days of their own, as a phase."""

    years = 400 * MAX_YEAR  # such years do not repeat

    def __init__(self, days: YearDays, span: tuple[int, int]) -> None:
        self._days, self._span = days, span
        self._some: dict[KindMasks, int] = {}

    def on(self, day: int) -> bool:
        """Whether the day is a member."""
        year = civil(day)[0]
        return bool(self._days.of_year(year) >> day - year_start(year) & 1)

    def mask(self, year: int) -> int:
        """The year's members."""
        return self._days.of_year(year)

    def prepare(self, allowed: KindMasks) -> None:
        """Look at the years."""
        self._years(allowed)

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """First year from this one on with an allowed member."""
        left = self._years(allowed) >> year
        return year + lowest(left) if left else None

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Last year up to this one with an allowed member."""
        left = self._years(allowed) & (2 << year) - 1
        return highest(left) if left else None

    def _years(self, allowed: KindMasks) -> int:
        """Bit n: year n has an allowed member."""
        if (found := self._some.get(allowed)) is None:
            first, last = self._span
            some = (year for year in range(first, last + 1) if self.mask(year) & allowed.mask(year))
            found = self._some[allowed] = sum(1 << year for year in some)
        return found


@dataclass(frozen=True, slots=True)
class Part:
    """Members of a rule between two local seconds, both inside.

    Attributes:
        blocks: the members as blocks; None when they would be too many.
        whole: the same members as a sequence without these bounds.
        rule: the RRULE that it is, to be asked where blocks do not say enough.
    """

    blocks: tuple[Block, ...] | None
    whole: Source
    first: int = MIN_LOCAL
    last: int = MAX_LOCAL
    rule: RuleSequence | None = None


@dataclass(frozen=True, slots=True)
class Class:
    """Days with the same times.

    Attributes:
        times: bits of the seconds of a day; with a step only those that a step meets.
        days: the days of a year.
        years: after so many years the days repeat.
        first, last: years between which it has days.
        begin, end: local seconds between which it has its times, both inside.
    """

    times: int
    step: Step | None
    days: Callable[[int], int]
    years: int
    first: int
    last: int
    begin: int = MIN_LOCAL
    end: int = MAX_LOCAL

    def mask(self, year: int) -> int:
        """The days of a year on which it has times."""
        return self._between(year, self.begin // DAY_S, self.end // DAY_S)

    def whole(self, year: int) -> int:
        """Those on which it has all of them."""
        return self._between(year, -(-self.begin // DAY_S), (self.end + 1) // DAY_S - 1)

    def _between(self, year: int, first: int, last: int) -> int:
        if not self.first <= year <= self.last:
            return 0
        days, start = self.days(year), year_start(year)
        if first > start:
            days = days >> first - start << first - start
        return days & (1 << max(last + 1 - start, 0)) - 1 if last < start + 366 else days


def classes_of(local: LocalSequence) -> list[Class]:
    """All members of a rule as days with the same times, its single dates aside."""
    remainders = local.remainders if isinstance(local, Reduced | SetSequence) else ()
    found: list[Class] = []
    for remainder in remainders:
        for stretch in remainder.stretches:
            blocks = remainder.blocks if stretch.whole is not None else ()
            span = (*_years(stretch.first, stretch.last), stretch.first, stretch.last)
            found += [_ANYTHING] if blocks is None else [_of_block(block, *span) for block in blocks]
            found += [_of_piece(piece, *span) for piece in stretch.pieces]
    if remainders:
        return found
    for part in parts_of(local):
        span = (*_years(part.first, part.last), part.first, part.last)
        found += [_ANYTHING] if part.blocks is None else [_of_block(block, *span) for block in part.blocks]
    return found


def _years(first: int, last: int) -> tuple[int, int]:
    return civil(max(first, MIN_LOCAL) // DAY_S)[0], civil(min(last, MAX_LOCAL) // DAY_S)[0]


def _of_block(block: Block, first: int, last: int, begin: int, end: int) -> Class:
    days = Days(block.allowed, block.phase)
    years = 400 if block.phase is None else lcm(400, block.phase.years)
    return Class(block.times, block.step, days.mask, years, first, last, begin, end)


def _of_piece(piece: Piece, first: int, last: int, begin: int, end: int) -> Class:
    days = piece.source.days
    years = days.years if isinstance(days, SortedDays) else 400
    if isinstance(days, Days) and days.phase is not None:
        years = lcm(400, days.phase.years)
    return Class(piece.times, piece.step, days.mask, years, first, last, begin, end)


def parts_of(local: LocalSequence) -> list[Part]:
    """Parts of a wall-clock rule, its single dates aside; with exceptions the parts hold more than its members."""
    if isinstance(local, CronRule):
        return _of_grid(local.grid)
    if isinstance(local, SchyntaxRule):
        return [part for group in local.groups for part in _of_grid(group.grid)]
    if isinstance(local, RuleSequence):
        return [_of_rule(local)]
    if isinstance(local, Reduced):
        return parts_of(local.whole)
    if isinstance(local, SetSequence):
        return [_of_rule(rule) for rule in local.included if rule.base is not None and rule.start <= rule.until]
    return []


def dates_of(local: LocalSequence) -> tuple[int, ...]:
    """Local seconds that a rule names one by one."""
    if isinstance(local, OnceLocal):
        return (local.at,)
    if isinstance(local, SetSequence):
        heads = () if local.remainders else (each for rule in local.included for each in rule.head)
        return tuple(sorted({*local.dates, *heads}))
    return ()


def without(local: LocalSequence, taken: Sequence[Taken]) -> LocalSequence | None:
    """The same rule, its single dates aside, without some times of some days; None when it cannot be said in few parts."""
    try:
        if isinstance(local, SetSequence):
            return local.without(taken)
        parts = parts_of(local)
        if not parts:
            return local
        cuts = {bound for each in taken for bound in (each.first, each.last)}
        if len(parts) * len(cuts) > _MOST_STRETCHES:
            return None
        return Reduced(local, [Remainder(part.blocks, part.whole, part.first, part.last, taken) for part in parts])
    except (TooMany, RuleInvalid):
        return None


def without_gaps(local: LocalSequence, zone: Zone) -> LocalSequence | None:
    """The same rule without the times that the clocks of later years skip."""
    gap = zone.yearly_gap()
    if gap is None:
        return None
    days, times = gap
    return without(local, [Taken(Block(days, None, times), zone.stored_to + 2 * DAY_S, MAX_LOCAL)])


class Reduced:
    """A wall-clock rule with times taken away; it keeps the sentence of the whole."""

    def __init__(self, whole: LocalSequence, remainders: Sequence[Remainder]) -> None:
        self.whole = whole
        self.remainders = tuple(remainders)

    def next_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """First member after (or at) the local second."""
        found = (each.next_local(local, inclusive=inclusive) for each in self.remainders)
        return min((each for each in found if each is not None), default=None)

    def previous_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """Last member before (or at) the local second."""
        found = (each.previous_local(local, inclusive=inclusive) for each in self.remainders)
        return max((each for each in found if each is not None), default=None)

    def text(self) -> str:
        """The sentence of the whole."""
        return self.whole.text()

    def ends(self) -> bool:
        """Whether the members of the whole are finite."""
        return self.whole.ends()

    def default_dst(self) -> DstPolicy:
        """That of the whole."""
        return self.whole.default_dst()


def _of_rule(rule: RuleSequence) -> Part:
    assert rule.base is not None
    blocks = blocks_of(rule)
    return Part(None if blocks is None else tuple(blocks), rule.base, rule.start, rule.until, rule)


def _of_grid(grid: Grid) -> list[Part]:
    times = grid.times()
    if not times:
        return []
    usual = (Block(DaysOf(grid.days.usual), None, times),)
    if grid.days.named_span is None:
        return [Part(usual, grid)]
    first, last = grid.days.named_span
    begin, end = year_start(first) * DAY_S, year_start(last + 1) * DAY_S
    named = (Block(EVERY_DAY, Named(grid.days, (first, last)), times),)
    return [
        Part(usual, grid, MIN_LOCAL, begin - 1),
        Part(named, grid, begin, end - 1),
        Part(usual, grid, end, MAX_LOCAL),
    ]


#: Parts of a rule times beginnings and ends of what is taken: each stretch of each part is read for itself.
_MOST_STRETCHES = 200
#: Stands for days and times that are not said.
_ANYTHING = Class((1 << DAY_S) - 1, None, EVERY_DAY.mask, 400, 1, MAX_YEAR)

"""What an exclusion closes, as days × times on the wall clock of a zone: surely, and at most.

*Surely* is used to take times out of rules, so it may say too little and never too much; *at most* is used to prove that
something is left, so it may say too much and never too little.

A change of the clocks moves the end of a window, and the image of a skipped time, by at most its own size. Where a zone
has changes, windows are therefore shrunk, or grown, by twice the largest one, except for times of day far from all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from lodger.engine.recurrence.apart import Shared, apart
from lodger.engine.recurrence.civil import CYCLE_DAYS, DAY_S, MAX_LOCAL, MIN_LOCAL
from lodger.engine.recurrence.dial import lowest
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.parts import EVERY_DAY, Part, parts_of
from lodger.engine.recurrence.rrule.blocks import Block
from lodger.engine.recurrence.rrule.parts import Freq, Rule
from lodger.engine.recurrence.rrule.phase import Phase
from lodger.engine.recurrence.rrule.relative import Taken, as_days
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rule import Fold, Gap, Recurrence
from lodger.engine.recurrence.shifted_days import MOST_DAYS, Both, Far, Near, far_once, near_once
from lodger.engine.recurrence.stretched import ALL, ANY_TIME, any_day, grown, moved_block, run_begins, turned
from lodger.engine.recurrence.union import Union
from lodger.engine.recurrence.window import Windows
from lodger.engine.recurrence.year_kinds import KindMasks
from lodger.engine.recurrence.zoned import Zoned
from lodger.engine.recurrence.zones import FAR, Zone, zone


@dataclass(frozen=True, slots=True)
class Closing:
    """What one exclusion closes.

    Attributes:
        surely: days × times, between local seconds.
        doubt: every time that it can close besides is among these, whatever the second, but for single days.
        single_days: so many days on which it may close any of ``singly``.
        windows_a_day: how many windows it can open on a day, at most.
        parts: how many rules it is made of, each with a beginning and an end of its own.
    """

    surely: tuple[Taken, ...]
    doubt: tuple[Block, ...] = ()
    single_days: int = 0
    windows_a_day: int = 1
    singly: int = 0
    parts: int = 1

    @property
    def doubtful(self) -> bool:
        """Whether it has to be asked."""
        return bool(self.doubt or self.single_days)


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock of a rule, and by which policy its times become instants.

    Without a policy the instants themselves are meant, by what the clock shows.
    """

    zone: Zone
    gap: Gap | None = None
    fold: Fold | None = None


def closing(window: Windows, clock: Clock) -> Closing:
    """What an exclusion closes on a wall clock, its single dates aside."""
    found = [_of(opens, window, clock) for opens in leaves_of(window.opens)]
    return Closing(
        tuple(taken for each in found for taken in each.surely),
        tuple(block for each in found for block in each.doubt),
        sum(each.single_days for each in found),
        sum(each.windows_a_day for each in found),
        reduce(or_, (each.singly for each in found), 0),
        sum(each.parts for each in found),
    )


def leaves_of(rule: Recurrence) -> list[Recurrence]:
    """The rules that a union is made of."""
    return [leaf for each in rule.rules for leaf in leaves_of(each)] if isinstance(rule, Union) else [rule]


def on_clock(rule: Every) -> Zoned | None:
    """An interval of whole seconds as every n-th second of UTC."""
    period, fraction = divmod(rule.period_us, 1_000_000)
    if fraction or rule.anchor_us % 1_000_000:
        return None
    anchor = rule.anchor_us // 1_000_000
    start = anchor if rule.starts else MIN_LOCAL + (anchor - MIN_LOCAL) % period
    return Zoned(RuleSequence(Rule(freq=Freq.SECONDLY, interval=period), start), zone("UTC"))


def _of(opens: Recurrence, window: Windows, clock: Clock) -> Closing:
    if isinstance(opens, Every):
        zoned = on_clock(opens)
        if zoned is None:
            a_day = DAY_S * 1_000_000 // opens.period_us + 1
            return Closing((), (ANY_TIME,), windows_a_day=a_day)
        opens = zoned
    if not isinstance(opens, Zoned):
        # An instant that no clock names is asked for each slot.
        return Closing((), (ANY_TIME,))
    reading = _Reading(opens, window, clock)
    parts = list(parts_of(opens.local))
    for part in parts:
        reading.add(part)
    return Closing(
        tuple(reading.surely),
        tuple(reading.doubt),
        reading.single_days,
        reading.windows_a_day,
        reading.singly,
        len(parts),
    )


@dataclass(frozen=True, slots=True)
class _Said:
    """What one block of an exclusion closes.

    Attributes:
        surely: days × times.
        near: times in doubt near a change of the clocks; None when nothing is said of what is in doubt.
        single_days: days in doubt besides.
        singly: times of day in doubt on these.
    """

    surely: Sequence[Taken] = ()
    near: Sequence[Block] | None = ()
    single_days: int = 0
    singly: int = ALL


_UNSAID = _Said(near=None)


class _Reading:
    """What the parts of one exclusion close on a clock."""

    def __init__(self, opens: Zoned, window: Windows, clock: Clock) -> None:
        here, there = opens.zone, clock.zone
        self._opens, self._window, self._clock = opens, window, clock
        #: How far the other clock is ahead on which days; None when it is the same clock.
        self._apart = None if here.key == there.key or (here.still and there.still) else apart(here, there)
        self._moved = there.offset(0) - here.offset(0) if here.still and there.still else 0
        self._told = opens.plain
        if isinstance(opens.local, SetSequence) and opens.local.has_exceptions:
            self._told = False
        self._alike = (clock.gap, clock.fold) == (opens.gap, opens.fold) and self._apart is None
        self.surely: list[Taken] = []
        self.doubt: list[Block] = []
        self.single_days = self.singly = 0
        self.windows_a_day = 0

    def add(self, part: Part) -> None:
        """Take in a part."""
        if part.blocks is None:
            self.doubt.append(ANY_TIME)
            self.windows_a_day = DAY_S
            return
        for block in part.blocks:
            self._block(part, block)

    def _block(self, part: Part, block: Block) -> None:
        if block.step is not None and not self._window.instants_only:
            turns = as_days(block, block.times)
            if turns is not None:  # long steps are days × times, by turns
                for each in turns:
                    self._block(part, each)
                return
        self.windows_a_day += windows_of(block)
        said = self._sure(part, block) if self._told else _UNSAID
        said = self._by_other(said) if self._apart is None else self._by_days(said, block)
        self.surely += said.surely
        if said.single_days:
            self.single_days += said.single_days
            for by_s in self._apart.by_s if self._apart is not None else (self._moved,):
                self.singly |= turned(said.singly, by_s)
        if said.near is None:
            begin, end = self._span(block)
            ahead = self._apart.by_s if self._apart is not None else (self._moved,)
            slack = 2 * self._opens.zone.largest_change
            self.doubt += grown(block, begin + min(ahead), end + max(ahead), slack) or [ANY_TIME]
        elif said.near:
            self.doubt += said.near

    def _by_other(self, said: _Said) -> _Said:
        """The same on the other clock, when both never change."""
        if not self._moved or not said.surely:
            return said
        surely: list[Taken] = []
        for taken in said.surely:
            moved = moved_block(taken.block, self._moved) if taken.block is not None else None
            if moved is None:
                return _UNSAID
            first, last = taken.first + max(self._moved, 0), taken.last + min(self._moved, 0)
            surely += [Taken(each, max(first, MIN_LOCAL), min(last, MAX_LOCAL)) for each in moved]
        return replace(said, surely=surely)

    def _by_days(self, said: _Said, block: Block) -> _Said:
        """The same by another clock: on each day as far ahead as it is then."""
        assert self._apart is not None
        if said.near is None:
            return _UNSAID
        surely: list[Taken] = []
        for taken in said.surely:
            for ahead in self._apart.ahead:
                first = ahead.first if taken.first == MIN_LOCAL else max(ahead.first, taken.first + ahead.by_s)
                last = ahead.last if taken.last == MAX_LOCAL else min(ahead.last, taken.last + ahead.by_s)
                if first > last:
                    continue
                moved = moved_block(taken.block, ahead.by_s) if taken.block is not None else None
                if moved is None:
                    return _UNSAID
                surely += [Taken(ahead.of(each), first, last) for each in moved]
        low, high = min(self._apart.by_s), max(self._apart.by_s)
        # What is closed however far ahead the other clock is, on days of a change as well.
        for taken in said.surely:
            if taken.block is None or taken.block.step is not None:
                continue
            core = replace(taken.block, times=run_begins(taken.block.times, high - low + 1))
            first = taken.first if taken.first == MIN_LOCAL else max(taken.first + high, MIN_LOCAL)
            last = taken.last if taken.last == MAX_LOCAL else min(taken.last + low, MAX_LOCAL)
            surely += [Taken(each, first, last) for each in grown(core, high, high + 1, 0) if first <= last]
        near = [each for there in said.near for each in grown(there, low, high + 1, 0)]
        # What it closes on days of a change, by any of the differences; the change itself moves a window's edges.
        if self._window.instants_only:
            times = 0
            for by_s in self._apart.by_s:
                times |= turned(block.times, by_s)
            closed = [Block(EVERY_DAY, None, times)]
        else:
            begin, end = self._span(block)
            closed = grown(block, begin + low, end + high, 2 * self._opens.zone.largest_change)
        near += _days_of(closed, self._apart.near, self._apart.near_once)
        return replace(said, surely=surely, near=near)

    def _span(self, block: Block) -> tuple[int, int]:
        """Seconds after an opening from which, and before which, its window closes."""
        if self._window.whole_days:
            return 0, DAY_S - lowest(block.times)
        return 0, self._window.length_s or 1

    def _sure(self, part: Part, block: Block) -> _Said:
        """What is closed on the exclusion's own clock."""
        if self._window.whole_days:
            return self._whole_days(part, block)
        if self._window.length_s is not None:
            return self._lengths(part, block, self._window.length_s)
        here = self._opens.zone
        if here.still:
            return _Said([Taken(block, part.first, part.last)])
        if self._alike:
            # The same member is the same instant; but one that is moved out of a gap may meet another one there.
            moved = _images(block.times, here, self._opens.gap)
            return _Said([Taken(block, part.first, part.last)], _near(here, 1, moved))
        calm = replace(block, times=block.times & ~here.changing())
        taken = [Taken(calm, part.first, part.last)]
        for each, first, last in self._calm(block, 1):
            taken.append(Taken(each, max(first, part.first), min(last, part.last)))
        # In doubt is all that is not surely closed: the days that the calm ones leave out.
        return _Said([each for each in taken if each.first <= each.last], _near(here, 2, here.changing()))

    def _whole_days(self, part: Part, block: Block) -> _Said:
        """From the first time of each day on to midnight."""
        here = self._opens.zone
        if block.step is not None or FAR in here.mixed_midnights:
            return _UNSAID
        opens = first = lowest(block.times)
        if first and not here.still:
            first = DAY_S if self._opens.gap is Gap.SKIP else min(first + 2 * here.largest_change, DAY_S)
        times = ALL >> first << first
        if not times or first != opens:
            return _UNSAID
        begin, end = part.first // DAY_S * DAY_S, part.last // DAY_S * DAY_S + DAY_S - 1
        days = 0
        if part.first % DAY_S > opens:  # the first day opens later than others
            begin, days = begin + DAY_S, days + 1
        if part.last % DAY_S < opens:  # the last one does not open any more
            end -= DAY_S
        found = []
        for mixed in here.mixed_midnights:
            if begin <= mixed <= end:
                found.append(
                    Taken(Block(block.allowed, block.phase, times), begin, mixed // DAY_S * DAY_S - 2 * DAY_S - 1)
                )
                begin, days = mixed // DAY_S * DAY_S + 3 * DAY_S, days + 5
        found.append(Taken(Block(block.allowed, block.phase, times), begin, min(end, MAX_LOCAL)))
        return _Said([each for each in found if each.first <= each.last], (), days)

    def _lengths(self, part: Part, block: Block, length_s: int) -> _Said:
        """Windows of a length; what they close in the first days of the part, and after its end, is not said."""
        here = self._opens.zone
        days = -(-length_s // DAY_S) + 1
        if block.step is None and days > MOST_DAYS:
            return self._endless(part, block, days - 3)
        if block.step is not None:
            return _UNSAID
        first = part.first if part.first == MIN_LOCAL else (part.first // DAY_S + days + 1) * DAY_S
        doubtful = (part.first > MIN_LOCAL) * (days + 2) + (part.last < MAX_LOCAL) * (days + 1)
        if here.still:
            sure = grown(block, 0, length_s, 0)
            return _Said([Taken(each, first, part.last) for each in sure], (), doubtful, any_day(sure))
        # Windows that open far from any change are told exactly, the others without their edges.
        found = []
        for calm, begin, end in self._calm(block, days):
            found += [(each, begin, end) for each in grown(calm, 0, length_s, 0)]
        slack = 2 * here.largest_change
        wide = replace(block, times=block.times & ~here.changing()) if self._opens.gap is Gap.SKIP else block
        found += [(each, MIN_LOCAL, MAX_LOCAL) for each in grown(wide, slack, length_s - slack, 0)]
        taken = [Taken(each, max(first, begin), min(part.last, end)) for each, begin, end in found if each.times]
        near = grown(block, 0, length_s, slack)
        return _Said(
            [each for each in taken if each.first <= each.last],
            _on_near(here, days + 2, near),
            doubtful,
            any_day(near),
        )

    def _calm(self, block: Block, days: int) -> list[tuple[Block, int, int]]:
        """The block's days after which no change comes for so many days; for single years, and for those that repeat."""
        here = self._opens.zone
        once = Block(block.allowed, Both(block.phase, far_once(here, days + 1, 2)), block.times, block.step)
        ever = Block(Far(block.allowed, Near(here, days + 1, 2)), block.phase, block.times, block.step)
        cut = (here.repeats_from // DAY_S + days + 4) * DAY_S
        return [(once, MIN_LOCAL, cut - 1), (ever, cut, MAX_LOCAL)]

    def _endless(self, part: Part, block: Block, days: int) -> _Said:
        """Windows that last longer than the longest wait for the next one."""
        if block.phase is not None or not block.allowed.total():
            return _UNSAID
        longest = max(map(len, (f"{block.allowed.cycle():0{CYCLE_DAYS}b}" * 2).split("1")))
        if longest + 1 > days:
            return _UNSAID
        first = part.first if part.first == MIN_LOCAL else part.first + (longest + 3) * DAY_S
        return _Said([Taken(ANY_TIME, first, part.last)], (), longest + days)


def _near(zone: Zone, days: int, times: int) -> list[Block]:
    """Times of the days around the changes of a zone's clocks: of those of every year, and of those of single years."""
    return [Block(Near(zone, days, days), None, times), Block(EVERY_DAY, near_once(zone, days, days), times)]


def _on_near(zone: Zone, days: int, blocks: Sequence[Block]) -> list[Block]:
    """Blocks on the days around the changes of a zone's clocks only."""
    return _days_of(blocks, Near(zone, days, days), near_once(zone, days, days))


def _days_of(blocks: Sequence[Block], ever: KindMasks, once: Phase) -> list[Block]:
    """Blocks on some days of years that repeat, and of single years."""
    found = [Block(Shared(each.allowed, ever), each.phase, each.times) for each in blocks]
    return found + [Block(each.allowed, Both(each.phase, once), each.times) for each in blocks]


def _images(times: int, zone: Zone, gap: Gap) -> int:
    """Times at which a time that a change skips, the exclusion's or the rule's, meets one that the clock shows."""
    found = 0
    if gap is Gap.SKIP:
        return found
    for begin, jump in zone.gaps():
        skipped = (1 << jump) - 1 << begin
        twice = times | times << DAY_S
        if gap is Gap.SHIFT:
            found |= (twice & skipped) << jump | twice >> jump & skipped
        elif twice & (skipped | 1 << begin + jump):
            found |= 1 << begin + jump
    return (found | found >> DAY_S) & ALL


def windows_of(block: Block) -> int:
    """How many windows it opens on a day."""
    if block.step is not None:
        return (DAY_S // block.step.unit_s // block.step.n + 1) * block.step.inside.size
    return block.times.bit_count()

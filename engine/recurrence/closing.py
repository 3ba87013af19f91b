"""What an exclusion closes, as days × times on the wall clock of a zone: surely, and at most.

*Surely* is used to take times out of rules, so it may say too little and never too much; *at most* is used to prove that
something is left, so it may say too much and never too little.

A change of the clocks moves the end of a window, and the image of a skipped time, by at most its own size. Where a zone
has changes, windows are therefore shrunk, or grown, by twice the largest one, except for times of day far from all of them.
"""

from dataclasses import dataclass, replace
from functools import reduce
from math import gcd
from operator import or_

from lodger.engine.recurrence.civil import CYCLE_DAYS, DAY_S, MAX_LOCAL, MIN_LOCAL
from lodger.engine.recurrence.dial import highest, lowest, stride
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.parts import EVERY_DAY, Part, dates_of, parts_of
from lodger.engine.recurrence.rrule.blocks import Block, Step
from lodger.engine.recurrence.rrule.clock_set import TimeList
from lodger.engine.recurrence.rrule.relative import Taken, as_days
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rule import Fold, Gap, Recurrence
from lodger.engine.recurrence.shifted_days import MOST_DAYS, Both, Far, FarOnce, Later, LaterSelected, Near
from lodger.engine.recurrence.union import Union
from lodger.engine.recurrence.window import Windows
from lodger.engine.recurrence.zoned import Zoned
from lodger.engine.recurrence.zones import FAR, Zone

ALL = (1 << DAY_S) - 1
ANY_TIME = Block(EVERY_DAY, None, ALL)
#: Wall clocks of two zones are never further apart.
_APART_S = 26 * 3600
#: Without an end.
FOR_EVER = 1 << 30


@dataclass(frozen=True, slots=True)
class Closing:
    """What one exclusion closes.

    Attributes:
        surely: days × times, between local seconds.
        doubt: every time that it can close besides is among these, whatever the second.
        doubtful_days: on so many days in all; 0 when nothing is in doubt.
        tight: what is in doubt is not grown, so stretches that are apart there are really apart.
        runs_a_day: how many separate stretches it can close on a day, at most.
    """

    surely: tuple[Taken, ...]
    doubt: tuple[Block, ...]
    doubtful_days: int
    tight: bool
    runs_a_day: int


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock of a rule, and by which policy its times become instants.

    Without a policy the instants themselves are meant, by what the clock shows.
    """

    zone: Zone
    gap: Gap | None = None
    fold: Fold | None = None


def closing(window: Windows, clock: Clock) -> Closing:
    """What an exclusion closes on a wall clock."""
    found = [_of(opens, window, clock) for opens in leaves_of(window.opens)]
    return Closing(
        tuple(taken for each in found for taken in each.surely),
        tuple(block for each in found if each.doubtful_days for block in each.doubt),
        min(FOR_EVER, sum(each.doubtful_days for each in found)),
        all(each.tight for each in found),
        sum(each.runs_a_day for each in found),
    )


def leaves_of(rule: Recurrence) -> list[Recurrence]:
    """The rules that a union is made of."""
    return [leaf for each in rule.rules for leaf in leaves_of(each)] if isinstance(rule, Union) else [rule]


def _of(opens: Recurrence, window: Windows, clock: Clock) -> Closing:
    if isinstance(opens, Every):
        return _interval(opens, clock)
    if not isinstance(opens, Zoned) or not (parts := parts_of(opens.local)):
        # Instants named one by one are not said as days, but asked for each slot.
        return Closing((), (ANY_TIME,), FOR_EVER, tight=False, runs_a_day=1)
    reading = _Reading(opens, window, clock)
    for part in parts:
        reading.add(part)
    if dates_of(opens.local):
        reading.doubt.append(ANY_TIME)
        reading.days, reading.tight = FOR_EVER, False
    return Closing(
        tuple(reading.surely), tuple(reading.doubt), min(reading.days, FOR_EVER), reading.tight, reading.runs_a_day
    )


class _Reading:
    """What the parts of one exclusion close on a clock."""

    def __init__(self, opens: Zoned, window: Windows, clock: Clock) -> None:
        here, there = opens.zone, clock.zone
        self._opens, self._window, self._clock = opens, window, clock
        #: Both clocks never change, so that one is the other moved by a constant.
        self._still = here.still and there.still
        self._moved = there.offset(0) - here.offset(0) if self._still else 0
        self._told = (self._still or here.key == there.key) and opens.plain
        if isinstance(opens.local, SetSequence) and opens.local.has_exceptions:
            self._told = False
        self._alike = (clock.gap, clock.fold) == (opens.gap, opens.fold)
        self.surely: list[Taken] = []
        self.doubt: list[Block] = []
        self.days = 0
        self.tight = True
        self.runs_a_day = 0

    def add(self, part: Part) -> None:
        """Take in a part."""
        if part.blocks is None:
            self._doubt([ANY_TIME], FOR_EVER, tight=False)
            self.runs_a_day = DAY_S
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
        self.runs_a_day += _runs(block, single=self._window.instants_only)
        slack = 0 if self._still else 2 * self._opens.zone.largest_change
        if self._opens.zone.key != self._clock.zone.key and not self._still:
            slack += _APART_S
        surely, doubt, days = self._sure(part, block) if self._told else ([], None, FOR_EVER)
        for taken in surely:
            moved = self._there([taken.block] if taken.block is not None else [], exact=True)
            if moved is None:
                days, doubt = FOR_EVER, None
                continue
            first, last = taken.first + max(self._moved, 0), taken.last + min(self._moved, 0)
            self.surely += [Taken(each, max(first, MIN_LOCAL), min(last, MAX_LOCAL)) for each in moved]
        if days and doubt is None:
            grown = self._there(_grown(block, *self._span(block), slack), exact=False)
            self._doubt(grown or [ANY_TIME], days, tight=not slack and block.step is None)
        elif days:
            self._doubt(doubt or [], days, tight=self._alike and self._window.instants_only)

    def _doubt(self, blocks: list[Block], days: int, *, tight: bool) -> None:
        self.doubt += blocks
        self.days += days
        self.tight = self.tight and tight

    def _span(self, block: Block) -> tuple[int, int]:
        """Seconds after an opening from which, and before which, its window closes."""
        if self._window.whole_days:
            return 0, DAY_S - lowest(block.times)
        return 0, self._window.length_s or 1

    def _there(self, blocks: list[Block], *, exact: bool) -> list[Block] | None:
        """The same on the other clock, when both never change; None when steps cannot be moved."""
        if not self._moved:
            return blocks
        found: list[Block] = []
        for block in blocks:
            step = block.step
            if step is None or not exact:
                found += _grown(block, self._moved, self._moved + 1, 0)
            elif self._moved % step.unit_s or block.allowed is not EVERY_DAY:
                return None
            else:
                at = self._moved // step.unit_s % len(step.table)
                table = step.table[-at:] + step.table[:-at] if at else step.table
                turned = block.times << self._moved % DAY_S
                times = (turned | turned >> DAY_S) & ALL
                moved = replace(step, origin=step.origin + self._moved // step.unit_s, table=table)
                found.append(Block(EVERY_DAY, None, times, moved))
        return found

    def _sure(self, part: Part, block: Block) -> tuple[list[Taken], list[Block] | None, int]:
        """What is surely closed, what besides (None: anything near), and on how many days."""
        if self._window.whole_days:
            return self._whole_days(part, block)
        if self._window.length_s is not None:
            return self._lengths(part, block, self._window.length_s)
        here = self._opens.zone
        if self._still:
            return [Taken(block, part.first, part.last)], None, 0
        near = Near(here, 1, 1)
        if self._alike:
            # The same member is the same instant; but one that is moved out of a gap may meet another one there.
            moved = Block(near, None, _images(block.times, here, self._opens.gap))
            return [Taken(block, part.first, part.last)], [moved], FOR_EVER
        calm = replace(block, times=block.times & ~here.changing())
        taken = [Taken(calm, part.first, part.last)]
        if block.step is None:
            for each, first, last in self._calm(block, 1):
                taken.append(Taken(each, max(first, part.first), min(last, part.last)))
        doubt = [Block(near if block.step is None else EVERY_DAY, None, here.changing())]
        return [each for each in taken if each.first <= each.last], doubt, FOR_EVER

    def _whole_days(self, part: Part, block: Block) -> tuple[list[Taken], list[Block] | None, int]:
        """From the first time of each day on to midnight."""
        here = self._opens.zone
        if block.step is not None or FAR in here.mixed_midnights:
            return [], None, FOR_EVER
        opens = first = lowest(block.times)
        if first and not here.still:
            first = DAY_S if self._opens.gap is Gap.SKIP else min(first + 2 * here.largest_change, DAY_S)
        times = ALL >> first << first
        if not times:
            return [], None, FOR_EVER
        begin, end = part.first // DAY_S * DAY_S, part.last // DAY_S * DAY_S + DAY_S - 1
        days = 0 if first == opens else FOR_EVER
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
        return [each for each in found if each.first <= each.last], None, days

    def _lengths(self, part: Part, block: Block, length_s: int) -> tuple[list[Taken], list[Block] | None, int]:
        """Windows of a length; what they close in the first days of the part, and after its end, is not said."""
        here = self._opens.zone
        days = -(-length_s // DAY_S) + 1
        if block.step is None and days > MOST_DAYS:
            return self._endless(part, block, days - 3)
        if block.step is not None:
            return [], None, FOR_EVER
        first = part.first if part.first == MIN_LOCAL else (part.first // DAY_S + days + 1) * DAY_S
        doubtful = (part.first > MIN_LOCAL) * (days + 2) + (part.last < MAX_LOCAL) * (days + 1)
        if here.still:
            return [Taken(each, first, part.last) for each in _grown(block, 0, length_s, 0)], None, doubtful
        # Windows that open far from any change are told exactly, the others without their edges.
        found = []
        for calm, begin, end in self._calm(block, days):
            found += [(each, begin, end) for each in _grown(calm, 0, length_s, 0)]
        slack = 2 * here.largest_change
        wide = replace(block, times=block.times & ~here.changing()) if self._opens.gap is Gap.SKIP else block
        found += [(each, MIN_LOCAL, MAX_LOCAL) for each in _grown(wide, slack, length_s - slack, 0)]
        taken = [Taken(each, max(first, begin), min(part.last, end)) for each, begin, end in found if each.times]
        near = Near(here, days + 2, days + 2)
        return [each for each in taken if each.first <= each.last], [Block(near, None, ALL)], FOR_EVER

    def _calm(self, block: Block, days: int) -> list[tuple[Block, int, int]]:
        """The block's days after which no change comes for so many days; for single years, and for those that repeat."""
        here = self._opens.zone
        once = Block(block.allowed, Both(block.phase, FarOnce(here, days + 1, 2)), block.times)
        ever = Block(Far(block.allowed, Near(here, days + 1, 2)), block.phase, block.times)
        cut = (here.repeats_from // DAY_S + days + 4) * DAY_S
        return [(once, MIN_LOCAL, cut - 1), (ever, cut, MAX_LOCAL)]

    def _endless(self, part: Part, block: Block, days: int) -> tuple[list[Taken], list[Block] | None, int]:
        """Windows that last longer than the longest wait for the next one."""
        if block.phase is not None or not block.allowed.total():
            return [], None, FOR_EVER
        longest = max(map(len, (f"{block.allowed.cycle():0{CYCLE_DAYS}b}" * 2).split("1")))
        if longest + 1 > days:
            return [], None, FOR_EVER
        first = part.first if part.first == MIN_LOCAL else part.first + (longest + 3) * DAY_S
        return [Taken(ANY_TIME, first, part.last)], None, longest + days


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


def _runs(block: Block, *, single: bool) -> int:
    """How many stretches it closes on a day."""
    if block.step is not None:
        return (DAY_S // block.step.unit_s // block.step.n + 1) * block.step.inside.size
    return (block.times & ~(block.times << 1)).bit_count() if single else block.times.bit_count()


def _grown(block: Block, begin: int, end: int, slack: int) -> list[Block]:
    """Times from ``begin`` to before ``end`` seconds after members, and ``slack`` on either side, by day."""
    begin, end = begin - slack, end + slack
    if end <= begin or not block.times:
        return []
    if end > MOST_DAYS * DAY_S:
        return [ANY_TIME]
    found: list[Block] = []
    if end - begin >= DAY_S:  # all windows of a day are one stretch
        low, high = lowest(block.times) + begin, highest(block.times) + end
        day, last = low // DAY_S, (high - 1) // DAY_S
        if day == last:
            return [_on(block, day, day, _run(low - day * DAY_S, high - day * DAY_S))]
        found.append(_on(block, day, day, _run(low - day * DAY_S, DAY_S)))
        if last > day + 1:
            found.append(_on(block, day + 1, last - 1, ALL))
        found.append(_on(block, last, last, _run(0, high - last * DAY_S)))
        return found
    lead = -(begin // DAY_S) if begin < 0 else 0
    bits = _dilated(block.times, end - begin) << lead * DAY_S + begin
    day = -lead
    while bits:
        if today := bits & ALL:
            found.append(_on(block, day, day, today))
        bits >>= DAY_S
        day += 1
    return found


def _on(block: Block, first: int, last: int, times: int) -> Block:
    """Times on the days so many days after the block's."""
    if first == last == 0:
        return Block(block.allowed, block.phase, times)
    if block.allowed is EVERY_DAY and block.phase is None:
        return Block(EVERY_DAY, None, times)
    if block.phase is None:
        return Block(Later(block.allowed, first, last), None, times)
    return Block(EVERY_DAY, LaterSelected(block.allowed, block.phase, first, last), times)


def _run(first: int, end: int) -> int:
    return (1 << end) - 1 >> first << first


def _dilated(bits: int, length: int) -> int:
    """Each member becomes a run of so many."""
    have = 1
    while have < length:
        more = min(have, length - have)
        bits |= bits << more
        have += more
    return bits


def _interval(opens: Every, clock: Clock) -> Closing:
    """Instants of an interval: on a clock that never changes they are days × times, on others at least near some times."""
    period, fraction = divmod(opens.period_us, 1_000_000)
    a_day = DAY_S // max(period, 1) + 1
    if fraction or opens.anchor_us % 1_000_000:
        return Closing((), (ANY_TIME,), FOR_EVER, tight=False, runs_a_day=a_day)
    anchor, common = opens.anchor_us // 1_000_000, gcd(period, DAY_S)
    origin = anchor + clock.zone.offset(0)
    first = origin if opens.starts else MIN_LOCAL
    if not clock.zone.still:
        every = [stride((anchor + offset) % common, DAY_S, common) for offset in clock.zone.offsets]
        near = Block(EVERY_DAY, None, reduce(or_, every))
        alike = len(set(every)) == 1 and period == common
        surely = (Taken(near, first + _APART_S, MAX_LOCAL),) if alike else ()
        return Closing(surely, (near,), FOR_EVER, tight=True, runs_a_day=a_day)
    times = stride(origin % common, DAY_S, common)
    step = None if period == common else Step(1, period, origin, b"\x01" * DAY_S, TimeList((0,)))
    block = Block(EVERY_DAY, None, times, step)
    return Closing((Taken(block, first, MAX_LOCAL),), (), 0, tight=True, runs_a_day=a_day)

"""How often a schedule really fires, exclusions and all: counted on every kind of day there is, within bounded work.

Two ways, by what the schedule is made of. Where everything repeats soon, one turn is walked. Where rules are days × times on
wall clocks, two days on which the same rules and exclusions have days, with the same changes of clocks around them, have the
same slots: so the days from an instant until all repeats are sorted by that, and of each sort one is walked, with the engine's own
answers. Days around single dates, beginnings and ends are walked each for itself. What fits neither way, or is more than
:data:`_MOST_SLOTS` slots, is not counted; then a bound is all that is known.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice, pairwise
from math import gcd, lcm

from lodger.engine.recurrence import timeset
from lodger.engine.recurrence.civil import (
    CYCLE_DAYS,
    DAY_S,
    MAX_LOCAL,
    MAX_YEAR,
    MIN_LOCAL,
    civil,
    days_in_year,
    instant_of,
    year_start,
)  # fmt: skip
from lodger.engine.recurrence.closing import leaves_of
from lodger.engine.recurrence.effort import slot_us
from lodger.engine.recurrence.every import Every, instant_us, us_instant
from lodger.engine.recurrence.instants import Instants
from lodger.engine.recurrence.meter import US, spend
from lodger.engine.recurrence.once import OnceAt
from lodger.engine.recurrence.parts import EVERY_DAY, Part, dates_of, parts_of
from lodger.engine.recurrence.rrule.blocks import Block, blocks_of
from lodger.engine.recurrence.rrule.residues import Residues
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rule import Density, Recurrence
from lodger.engine.recurrence.union import LAST, Union
from lodger.engine.recurrence.zoned import Zoned
from lodger.engine.recurrence.zones import FAR, Zone

_DAY_US = DAY_S * 1_000_000
#: Slots that are walked in all.
_MOST_SLOTS = 20_000
#: Splittings of sets of days, each a bit per day, and years that they reach over.
_MOST_SPLITS, _MOST_YEARS = 20_000, 900
#: Days that are walked each for itself, and days by which an exclusion may reach on.
_MOST_SINGLE, _MOST_REACH = 400, 8
_DAY = timedelta(days=1)


class _Unfit(Exception):
    """It is not made so that it can be counted, or not in bounded work."""


def counted(schedule: Union, since: datetime) -> Density | None:
    """Least distance and most per UTC day from an instant on, exactly; None when that is too much work."""
    try:
        made = _Made(schedule, instant_us(since) // 1_000_000)
        return _turn(schedule, made, since) or _days(schedule, made, since)
    except _Unfit:
        return None


def reached(schedule: Union, bound: Density, since: datetime) -> bool:
    """Whether a plain day soon after an instant is as full as a bound says: of dense rules, as sets of seconds."""
    first = instant_us(since) // _DAY_US + 2
    if schedule.exclusions or schedule.start is not None or schedule.end is not None:
        return False
    leaves = [leaf for rule in schedule.rules for leaf in leaves_of(rule)]
    for day in range(first, first + 8):
        times = 0
        for leaf in leaves:
            times |= _seconds_of(leaf, day) if isinstance(leaf, Zoned) and leaf.plain else 0
        if times.bit_count() == bound.most_per_day and timeset.smallest_gap(times) == bound.smallest_gap_s:
            return True
    return False


def _seconds_of(leaf: Zoned, day: int) -> int:
    """Seconds of a UTC day at which a rule surely has slots; none near a change of the clocks."""
    here = leaf.zone.segment(day * DAY_S)
    exceptions = isinstance(leaf.local, SetSequence) and leaf.local.has_exceptions
    if exceptions or here.end < (day + 3) * DAY_S or here.start > (day - 2) * DAY_S:
        return 0
    found = 0
    for part in parts_of(leaf.local):
        for block in part.blocks or ():
            for local in range(day - 1, day + 2):
                year, inside = civil(local)[0], part.first <= local * DAY_S and local * DAY_S + DAY_S <= part.last
                days = block.allowed.mask(year) & (block.phase.mask(year) if block.phase is not None else -1)
                if inside and block.step is None and days >> local - year_start(year) & 1:
                    at = (local - day) * DAY_S - here.offset
                    found |= block.times << at if at >= 0 else block.times >> -at
    return found & (1 << DAY_S) - 1


class _Made:
    """What a schedule is made of.

    Attributes:
        turn_us: after so long all its parts repeat.
        since: second from which on it is counted.
        settled: local second from which on they do.
        blocks: days × times between local seconds, of rules and exclusions alike.
        zones: wall clocks.
        single: local seconds around which something happens once.
        reach: days by which exclusions reach on.
    """

    def __init__(self, schedule: Union, since: int) -> None:
        self.turn_us = 1
        self.since = self.settled = since
        self.blocks: list[tuple[Block, int, int]] = []
        self.zones: dict[str, Zone] = {}
        self.single: set[int] = set()
        self.reach = 0
        self.drifts = False
        for rule in schedule.rules:
            for leaf in leaves_of(rule):
                self._leaf(leaf)
        for window in schedule.exclusions:
            self.reach = max(self.reach, 2 if window.whole_days else -(-(window.length_s or 0) // DAY_S) + 1)
            for leaf in leaves_of(window.opens):
                self._leaf(leaf)
        for bound in (schedule.start, schedule.end):
            if bound is not None:
                self._once([instant_us(bound) // 1_000_000])

    def _once(self, seconds: Iterable[int]) -> None:
        for second in seconds:
            if MIN_LOCAL < second < MAX_LOCAL:
                self.single.add(second)
                self.settled = max(self.settled, second + 2 * DAY_S)

    def _leaf(self, leaf: Recurrence) -> None:
        if isinstance(leaf, Every):
            self.turn_us = lcm(self.turn_us, leaf.period_us)
            self.drifts = self.drifts or _DAY_US % leaf.period_us != 0
            if leaf.starts:
                self._once([leaf.anchor_us // 1_000_000])
        elif isinstance(leaf, OnceAt):
            self._once([instant_us(leaf.instant) // 1_000_000])
        elif isinstance(leaf, Instants):
            self._once(instant_us(each) // 1_000_000 for each in leaf.instants)
        elif isinstance(leaf, Zoned):
            self._zoned(leaf)
        else:
            raise _Unfit

    def _zoned(self, leaf: Zoned) -> None:
        self._once(dates_of(leaf.local))
        self._once(leaf.single)
        if not leaf.zone.still:
            self.zones[leaf.zone.key] = leaf.zone
        if leaf.zone.changes():
            self.turn_us = lcm(self.turn_us, CYCLE_DAYS * _DAY_US)
            self.settled = max(self.settled, leaf.zone.repeats_from + 2 * DAY_S)
        parts = parts_of(leaf.local)
        if isinstance(leaf.local, SetSequence):
            self._once(leaf.local.rules.exdates)
            self._once(day * DAY_S for day in leaf.local.rules.exdays)
            for rule in leaf.local.exceptions:
                blocks = blocks_of(rule)
                if blocks is None or rule.base is None:
                    raise _Unfit
                parts.append(Part(tuple(blocks), rule.base, rule.start, rule.until))
        for part in parts:
            if part.blocks is None:
                raise _Unfit
            self._once((part.first, part.last))
            for block in part.blocks:
                self.blocks.append((block, part.first, part.last))
                self._repeats(block, ends=part.last < MAX_LOCAL)

    def _repeats(self, block: Block, *, ends: bool) -> None:
        if block.step is not None:
            self.drifts = True
            self.turn_us = lcm(self.turn_us, block.step.n * block.step.unit_s * 1_000_000)
        whole = block.allowed is EVERY_DAY or block.allowed.total() == CYCLE_DAYS
        days = 1 if whole else 7 if _weekly(block) else CYCLE_DAYS
        if isinstance(block.phase, Residues):
            days = lcm(days, block.phase.modulus)
        elif block.phase is not None and block.phase.years <= MAX_YEAR:
            days = lcm(days, CYCLE_DAYS, block.phase.years // gcd(block.phase.years, 400) * CYCLE_DAYS)
        elif block.phase is not None and not ends:
            raise _Unfit
        self.turn_us = lcm(self.turn_us, days * _DAY_US)


def _weekly(block: Block) -> bool:
    days = block.allowed.cycle()
    return not (days ^ days >> 7) & (1 << CYCLE_DAYS - 7) - 1


def _turn(schedule: Union, made: _Made, since: datetime) -> Density | None:
    """Count one whole turn, and what comes before it, when these are few slots."""
    begin = (made.settled // DAY_S + made.reach + 1) * _DAY_US
    if begin + 2 * made.turn_us > instant_us(LAST):
        return None
    probe = _slots(schedule, us_instant(begin), us_instant(begin + made.turn_us), 200)
    if len(probe) > 200 and (instant_us(probe[-1]) - begin) * _MOST_SLOTS < made.turn_us * 200:
        return None
    slots = _slots(schedule, since, us_instant(begin + made.turn_us), _MOST_SLOTS)
    if len(slots) > _MOST_SLOTS:
        return None
    after = schedule.next_after(slots[-1]) if slots else None
    gaps = [(two - one).total_seconds() for one, two in pairwise([*slots, *([after] if after else [])])]
    turn = [us - begin for us in map(instant_us, slots) if us >= begin]
    most = _per_day(slot for slot in slots if instant_us(slot) < begin + _DAY_US)
    return Density(min(gaps, default=None), max(most, _fullest(turn, begin, made.turn_us)), exact=True)


def _fullest(turn: Sequence[int], begin: int, turn_us: int) -> int:
    """Most slots of a day, of those that come again after each turn."""
    if turn_us % _DAY_US == 0:
        return _per_day(us_instant(begin + each) for each in turn)
    apart = gcd(turn_us, _DAY_US)
    if turn_us // apart > _MOST_SLOTS:
        raise _Unfit

    def before(us: int) -> int:
        turns, rest = divmod(us, turn_us)
        return turns * len(turn) + bisect_left(turn, rest)

    starts = range(-begin % apart, turn_us, apart)
    return max((before(at + _DAY_US) - before(at) for at in starts), default=0)


def _per_day(slots: Iterable[datetime]) -> int:
    return max(Counter(instant_us(slot) // _DAY_US for slot in slots).values(), default=0)


def _slots(schedule: Union, begin: datetime, end: datetime, most: int) -> list[datetime]:
    """Slots between two instants; one more than asked for when there are more."""
    found, cost = [], US * slot_us(schedule)
    for slot in islice(schedule.between(begin, end), most + 1):
        spend(cost)
        found.append(slot)
    return found


def _days(schedule: Union, made: _Made, since: datetime) -> Density | None:
    """Count one day of each sort."""
    turn_days, rest = divmod(made.turn_us, _DAY_US)
    last, today = civil(made.settled // DAY_S)[0] + 1, made.since // DAY_S
    years = range(civil(today)[0] - 1, min(last + -(-turn_days // 365) + 2, MAX_YEAR + 1))  # a turn may be ages
    if made.drifts or rest or made.reach > _MOST_REACH or len(years) > _MOST_YEARS or years[-1] >= MAX_YEAR:
        return None
    back, on = 3 + made.reach, 2
    single = {second // DAY_S + at for second in made.single for at in range(-on, back + 1)}
    single = {today, *(day for day in single if day > today)}
    if len(single) > _MOST_SINGLE:
        return None
    origin, end = year_start(years[0]), year_start(years[-1] + 1)
    sorts = _Sorts(end - origin, today - origin)
    around = dict.fromkeys(_laid_out(block, first, until, years) for block, first, until in made.blocks)
    for zone in made.zones.values():
        changes, offsets = _changes(zone, origin, end)
        around |= dict.fromkeys(changes.values())
        for days in offsets.values():
            sorts.split(days)
    for days in around:
        for at in range(-back, on + 1):
            sorts.split(days << -at if at < 0 else days >> at)
    best: timedelta | None = None
    most = walked = 0
    for day in [*single, *(origin + at for at in sorts.one_of_each())]:
        begin = instant_of(day * DAY_S)
        slots = _slots(schedule, max(begin, since), begin + _DAY, _MOST_SLOTS - walked)
        walked += len(slots) + 1
        if walked > _MOST_SLOTS:
            return None
        most = max(most, len(slots))
        before = schedule.previous_before(slots[0]) if slots else None
        if before is not None and before >= max(begin - _DAY, since):
            slots.insert(0, before)
        for one, two in pairwise(slots):
            best = two - one if best is None or two - one < best else best
    # Slots of days that are not neighbours are further apart than a day.
    return Density(best.total_seconds(), most, exact=True) if best is not None and best <= _DAY else None


class _Sorts:
    """Days, a bit each, sorted by the sets that they are in."""

    def __init__(self, size: int, first: int) -> None:
        self._sorts = [(1 << size) - 1 >> first + 1 << first + 1]
        self._splits = 0

    def split(self, days: int) -> None:
        """Tell days that are in a set from those that are not."""
        self._splits += len(self._sorts)
        if self._splits > _MOST_SPLITS:
            raise _Unfit
        self._sorts = [each for old in self._sorts for each in (old & days, old & ~days) if each]

    def one_of_each(self) -> list[int]:
        """The first day of each sort."""
        return [(each & -each).bit_length() - 1 for each in self._sorts]


def _laid_out(block: Block, first: int, last: int, years: range) -> int:
    """Days of a block, a bit each from January 1 of the first year on."""
    found = at = 0
    origin = year_start(years[0])
    for year in years:
        days = block.allowed.mask(year)
        if block.phase is not None:
            days &= block.phase.mask(year)
        found |= days << at
        at += days_in_year(year)
    low, high = max(first // DAY_S - origin, 0), min(last // DAY_S - origin + 1, at)
    return found & (1 << max(high, 0)) - 1 >> low << low


def _changes(zone: Zone, first: int, end: int) -> tuple[dict[tuple[int, int, int], int], dict[int, int]]:
    """UTC days with a change of each kind, and with each offset at their beginning, a bit each."""
    changes: dict[tuple[int, int, int], int] = {}
    offsets: dict[int, int] = {}
    here = zone.segment(first * DAY_S)
    while here.start < end * DAY_S:
        low, high = max(here.start // DAY_S - first, 0), min(here.end // DAY_S, end) - first
        offsets[here.offset] = offsets.get(here.offset, 0) | (1 << high + 1) - 1 >> low << low
        if here.end >= FAR:
            break
        following = zone.segment(here.end)
        kind = (here.offset, following.offset, here.end % DAY_S)
        changes[kind] = changes.get(kind, 0) | 1 << max(here.end // DAY_S - first, 0)
        here = following
    return changes, offsets

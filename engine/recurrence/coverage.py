"""The proof that exclusions, where they have to be asked, close few slots of a rule in a row.

A day is *free* when it has a slot that no exclusion can reach, and *in doubt* when it has slots but none of these. Sets of
days are integers, one bit a day, over as many years as the calendar and all INTERVALs need to repeat.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from math import gcd, lcm

from lodger.engine.recurrence import timeset
from lodger.engine.recurrence.civil import DAY_S, MAX_LOCAL, MAX_YEAR, MIN_LOCAL, days_in_year
from lodger.engine.recurrence.closing import Closing
from lodger.engine.recurrence.dial import stride
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.meter import spend
from lodger.engine.recurrence.parts import EVERY_DAY, Class, classes_of
from lodger.engine.recurrence.rrule.blocks import Block
from lodger.engine.recurrence.rrule.leftover import Sorter, TooMany
from lodger.engine.recurrence.rrule.phase import Phase
from lodger.engine.recurrence.rrule.relative import Taken, as_days
from lodger.engine.recurrence.rule import Recurrence
from lodger.engine.recurrence.shifted_days import named_years
from lodger.engine.recurrence.stretched import ALL, ANY_TIME, run_begins
from lodger.engine.recurrence.year_kinds import KindMasks
from lodger.engine.recurrence.zoned import Zoned
from lodger.engine.recurrence.zones import Zone

#: Up to this year come all that have days of their own: named in a rule, or with changes of the clocks by hand.
_SINGLE = 2200
#: Before it nothing begins or ends that matters: what is there repeats.
_ANCIENT = 1600
#: Years times rules and exclusions that are looked at.
_MOST_WORK = 200_000
_BUSY = re.compile("1+")


@dataclass(frozen=True, slots=True)
class _Needs:
    """Slots by their time of day, or of an interval anywhere in it."""

    times: int
    stretch_s: int  # any open stretch so long holds a slot; 0 when every open time of the day is one
    row: Class | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """How much is found closed at most before something free is found, or nothing is left.

    Attributes:
        slots: so many slots, each window that closes several counted once.
        leaps: so many stretches of two days and the change of a clock, that each begin with a slot, reach something free.
    """

    slots: int
    leaps: int


def longest_row(source: Recurrence, doubts: Sequence[Closing], here: Zone) -> Row | None:
    """What a question about a rule can find closed one after another; None when no bound is proved.

    Args:
        source: the rule, without what is surely closed where it could be taken away.
        doubts: what exclusions can close besides, on the wall clock of a zone.
        here: that zone.
    """
    if not doubts:
        return Row(0, 1)
    surely: list[Block] = []
    outside = Row(0, 0)
    if isinstance(source, Every):
        needs = _of_interval(source, here)
        # Only what one exclusion closes is jumped over together: two that take turns are asked in turn.
        widest, jumped = max(((said, _together(said)) for said in doubts), key=lambda each: _days(each[1]))
        surely = [each.block for each in jumped if each.block is not None]
    elif isinstance(source, Zoned):
        needs = [_needs(part) for each in classes_of(source.local) for part in _by_days(each)]
    else:
        return Row(1, 1)  # single instants are free or not
    lasting = [each for each in doubts if each.doubt]
    shut = singly = 0
    for each in lasting:
        for block in each.doubt:
            shut |= block.times
    for each in doubts:
        singly |= each.singly if each.single_days else 0
    # On the day of a change the free slot may be one that is skipped: then the row goes on to the next free day.
    days = (2 if here.still else 3) + _cut_within_days(needs)
    windows = sum(each.windows_a_day for each in doubts)
    a_day = min(windows, sum(map(_slots_a_day, needs)), _any(needs).bit_count())
    if all(_is_free(need, shut | singly) for need in needs):
        row = min(a_day, sum(_shut_in_a_row(need, shut | singly) for need in needs))
        return Row((days if here.still else days + 1) * row, days)
    # Single days in doubt may lie within, before and after what else is in doubt.
    rooms = 1 + sum(bool(each.single_days) for each in doubts)
    single = sum(each.single_days for each in doubts)
    if not lasting:
        days = single + rooms
    elif all(_is_free(need, shut) for need in needs):
        days = single + rooms * days
    else:
        most = _most_in_doubt(needs, lasting, surely)
        if most is None:
            return None
        days = single + rooms * (most + 2) * (1 if here.still else 2)
        if isinstance(source, Every) and jumped:
            found = _outside(source, doubts, widest, jumped, here)
            if found is None:
                return None
            outside = found
    return Row((days if here.still else days + 1) * a_day + outside.slots, days + 1 + outside.leaps)


def _outside(
    source: Every, doubts: Sequence[Closing], widest: Closing, jumped: Sequence[Taken], here: Zone
) -> Row | None:
    """What can be found closed before what is jumped over begins, and after it ends."""
    sides = _sides(source, *_span(widest, jumped), here)
    if not sides:
        return Row(0, 0)
    others = (_without(said, jumped) if said is widest else said for said in doubts)
    found = longest_row(source, [said for said in others if said.doubtful], here)
    return found and Row(sides * found.slots, sides * found.leaps)


def _days(taken: Iterable[Taken]) -> int:
    return sum(each.block.allowed.total() for each in taken if each.block is not None)


def _together(said: Closing) -> list[Taken]:
    """Of what an exclusion closes for sure the days × times that are closed over one and the same time, where these are most."""
    there = [each for each in said.surely if each.block is not None and each.block.step is None]
    if said.parts == 1:
        return there  # its days are told apart by what the clocks were then, and follow one another
    spans = {(each.first, each.last) for each in there}
    ways = ([each for each in there if each.first <= first and each.last >= last] for first, last in sorted(spans))
    return max(ways, key=_days, default=[])


def _without(said: Closing, jumped: Sequence[Taken]) -> Closing:
    """What an exclusion closes before or after these: of a single rule nothing."""
    if said.parts == 1:
        return Closing(())
    first, last = _span(said, jumped)
    gone = {id(each.block) for each in jumped if first <= each.first and each.last <= last}
    return replace(
        said,
        surely=tuple(each for each in said.surely if id(each.block) not in gone),
        doubt=tuple(block for block in said.doubt if id(block) not in gone),
    )


def _span(said: Closing, jumped: Sequence[Taken]) -> tuple[int, int]:
    """From when to when these are closed together."""
    if said.parts == 1:
        return min(each.first for each in jumped), max(each.last for each in jumped)
    return max(each.first for each in jumped), min(each.last for each in jumped)


def _sides(source: Every, first: int, last: int, here: Zone) -> int:
    """On how many sides an interval has slots, before what is jumped over begins or after it ends, that the others close alone."""
    starts = source.starts and source.anchor_us // 1_000_000 + min(here.offsets) >= first
    return (first > MIN_LOCAL and not starts) + (last < MAX_LOCAL)


def row_beside_steps(
    source: Zoned, doubts: Sequence[Closing], here: Zone, among: Callable[[int], int | None], periods_s: Sequence[int]
) -> Row | None:
    """The same for a rule that intervals close single slots of besides: None unless every day keeps one.

    While the clock is not changed an interval meets times of one residue only; over a change it may meet those of two.

    Args:
        source, doubts, here: as for :func:`longest_row`, the intervals aside.
        among: of so many slots in a row, so many seconds apart, no interval closes all; None when that is not known.
        periods_s: the intervals' periods.
    """
    shut = 0
    for each in doubts:
        shut |= each.singly if each.single_days else 0
        for block in each.doubt:
            shut |= block.times
    needs = [_needs(part) for each in classes_of(source.local) for part in _by_days(each)]
    if not all(_keeps_one(need, shut, among, periods_s) for need in needs):
        return None
    days = (2 if here.still else 4) + _cut_within_days(needs)
    return Row(days * sum(map(_slots_a_day, needs)), days)


def _keeps_one(need: _Needs, shut: int, among: Callable[[int], int | None], periods_s: Sequence[int]) -> bool:
    left = need.times & ~shut
    if need.stretch_s:
        neighbours = among(need.stretch_s)
        return neighbours is not None and _is_free(need, shut, neighbours)
    times = timeset.listed(left)
    return len(times) > sum(max(Counter(at % period for at in times).values(), default=0) for period in periods_s)


def _cut_within_days(needs: Sequence[_Needs]) -> bool:
    """Whether a day can belong to two stretches of the rule, and have all times of neither."""
    begins = sorted({need.row.begin for need in needs if need.row is not None})
    return any(begin % DAY_S for begin in begins[1:])


def _of_interval(source: Every, here: Zone) -> list[_Needs]:
    """An interval that divides the day, or that the day divides, has its times by the offset of the zone."""
    period, fraction = divmod(source.period_us, 1_000_000)
    if fraction or (DAY_S % period and period % DAY_S) or source.anchor_us % 1_000_000:
        return [_Needs(ALL, -(-source.period_us // 1_000_000))]
    step, anchor = min(period, DAY_S), source.anchor_us // 1_000_000
    return [_Needs(stride((anchor + offset) % step, DAY_S, step), 0) for offset in here.offsets]


def _by_days(each: Class) -> list[Class]:
    """Steps longer than a few hours as days × times, when these are few."""
    step = each.step
    if step is None or step.n * step.unit_s <= DAY_S // 8:
        return [each]
    turns = as_days(Block(EVERY_DAY, None, each.times, step), each.times)
    if turns is None:
        return [each]
    found = []
    for turn in turns:
        phase = turn.phase
        assert phase is not None
        years = lcm(each.years, phase.years)
        found.append(replace(each, times=turn.times, step=None, days=_on_both(each.days, phase), years=years))
    return found


def _on_both(days: Callable[[int], int], phase: Phase) -> Callable[[int], int]:
    return lambda year: days(year) & phase.mask(year)


def _needs(each: Class) -> _Needs:
    return _Needs(each.times, 0 if each.step is None else each.step.n * each.step.unit_s, each)


def _is_free(need: _Needs, shut: int, neighbours: int = 1) -> bool:
    """Whether a day has a slot at a time that is not shut; so many in a row, of steps."""
    left = need.times & ~shut
    if not left or not need.stretch_s:
        return bool(left)
    step = need.row.step if need.row is not None else None
    if step is None:
        around = left | left << DAY_S
        return _has_run(around, need.stretch_s * neighbours)
    # Steps come at every position only when they drift by one: of the others they pass, nothing has to be open.
    flags, every = timeset.flags_of(left, DAY_S), gcd(step.n, DAY_S // step.unit_s)
    first = step.origin % every
    tables = (
        flags[offset + first * step.unit_s :: every * step.unit_s] for offset in timeset.listed(step.inside.bits())
    )
    return any(max(map(len, table.split(b"\0"))) >= step.n * neighbours // every for table in tables)


def _has_run(bits: int, length: int) -> bool:
    have = 1
    while bits and have < length:
        more = min(have, length - have)
        bits &= bits >> more
        have += more
    return bool(bits)


def _any(needs: Sequence[_Needs]) -> int:
    """Times of any slot."""
    times = 0
    for need in needs:
        times |= need.times
    return times


def _slots_a_day(need: _Needs) -> int:
    """Most slots of a day."""
    step = need.row.step if need.row is not None else None
    if step is not None:
        return min(need.times.bit_count(), (DAY_S // step.unit_s // step.n + 1) * step.inside.size)
    if need.row is None and need.stretch_s:
        return DAY_S // need.stretch_s + 1
    return need.times.bit_count()


def _shut_in_a_row(need: _Needs, shut: int) -> int:
    """Most slots of a day, one after another, that are all shut."""
    if need.stretch_s:
        return _slots_a_day(need)
    spend(4000)
    closed = compress(timeset.flags_of(shut, DAY_S), timeset.flags_of(need.times, DAY_S))
    return max(map(len, bytes(closed).split(b"\0")))


def _most_in_doubt(needs: Sequence[_Needs], doubts: Sequence[Closing], surely: Sequence[Block]) -> int | None:
    """Most days in doubt one after another, days without slots aside; None when that is not known.

    Days that are surely closed from end to end are jumped over together, so they are no days in doubt.
    """
    blocks = [_ever(block) for each in doubts for block in each.doubt]
    surely = [block for block in surely if block.phase is None or block.phase.years <= MAX_YEAR]
    years = 400
    for phase in (block.phase for block in (*blocks, *surely)):
        years = lcm(years, phase.years if phase is not None and phase.years <= MAX_YEAR else 1)
    rows = [need.row for need in needs if need.row is not None]
    for row in rows:
        years = lcm(years, row.years if row.years <= MAX_YEAR or row.last > _SINGLE else 1)
    # All years in which something begins or ends, and after them as many as repeat.
    spans = [(row.first, row.last) for row in rows]
    spans += [span for block in blocks if (span := named_years(block.phase)) is not None]
    edges = [year for span in spans for year in span if _ANCIENT < year < MAX_YEAR]
    begin = min(edges, default=_ANCIENT)
    asked = range(begin, min(max(edges, default=begin) + years, MAX_YEAR) + 1)
    if len(asked) * (len(needs) + len(blocks) + len(surely)) > _MOST_WORK:
        return None
    try:
        open_days, closed_days = _sorter(blocks, asked), _sorter(surely, asked)
    except TooMany:
        return None
    free = busy = at = 0
    ends_free = ends_busy = False
    chunks: list[tuple[int, int, int]] = []
    known: dict[tuple[int, int], bool] = {}
    work = 5 + 3 * len(needs)
    for year in asked:
        spend(work)
        here_free, here_busy = _year(year, needs, open_days, known)
        closed = closed_days.sorted(year)
        for state, days in closed.items():
            if not closed_days.states[state]:
                here_busy &= ~days
        free |= here_free << at
        if year > asked[-1] - years:
            ends_free, ends_busy = ends_free or bool(here_free), ends_busy or bool(here_busy)
        busy |= (here_busy & ~here_free) << at
        at += days_in_year(year)
        if at > 20_000:
            chunks.append((free, busy, at))
            free = busy = at = 0
    chunks.append((free, busy, at))
    if ends_busy and not ends_free:
        return None  # what repeats for ever has no free day
    marked = "".join(_marks(*chunk) for chunk in chunks)
    marked = marked if years > MAX_YEAR else marked + marked[: 400 * 366]
    return max(map(len, _BUSY.findall(marked)), default=0)


def _ever(block: Block) -> Block:
    """The same in every year, when it is meant for single years."""
    if block.phase is None or block.phase.years <= MAX_YEAR or named_years(block.phase) is not None:
        return block
    return Block(block.allowed, None, block.times)


def _sorter(blocks: Sequence[Block], years: range) -> Sorter:
    """Days by the times that blocks leave on them."""
    groups: dict[int, list[tuple[KindMasks, Phase | None]]] = {}
    for block in blocks:
        groups.setdefault(block.times, []).append((block.allowed, block.phase))
    return Sorter(ANY_TIME, groups, years)


def _marks(free: int, busy: int, size: int) -> str:
    """Days in order: 2 for a free one, 1 for one in doubt, days without slots left out."""
    digits = int(f"{free:0{size}b}", 16) * 2 + int(f"{busy:0{size}b}", 16)
    return f"{digits:0{size}x}"[::-1].replace("0", "")


def _year(year: int, needs: Sequence[_Needs], sorter: Sorter, known: dict[tuple[int, int], bool]) -> tuple[int, int]:
    """Days of a year that are free, and days that have slots."""
    free = busy = untouched = 0
    looks = [(i, need, -1 if need.row is None else need.row.mask(year)) for i, need in enumerate(needs)]
    wholes: dict[int, int] = {}
    for state, mask in sorter.sorted(year).items():
        untouched |= mask if state == 0 else 0
        for i, need, days in looks:
            if here := mask & days:
                if (i, state) not in known:
                    known[i, state] = _is_free(need, ALL & ~sorter.states[state])
                busy |= here
                if known[i, state]:
                    if i not in wholes:
                        wholes[i] = -1 if need.row is None else need.row.whole(year)
                    free |= here & wholes[i]
    for need in needs:
        if need.row is None and need.stretch_s >= DAY_S:
            free |= run_begins(untouched, -(-need.stretch_s // DAY_S) + 1)
    return free, busy

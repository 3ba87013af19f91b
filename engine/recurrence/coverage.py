"""The proof that exclusions, where they have to be asked, close few slots of a rule in a row.

A day is *free* when it has a slot that no exclusion can reach, and *in doubt* when it has slots but none of these. Sets of
days are integers, one bit a day, over as many years as the calendar and all INTERVALs need to repeat.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm

from lodger.engine.recurrence import timeset
from lodger.engine.recurrence.civil import DAY_S, MAX_YEAR, days_in_year
from lodger.engine.recurrence.closing import Closing
from lodger.engine.recurrence.dial import stride
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.parts import EVERY_DAY, Class, classes_of
from lodger.engine.recurrence.rrule.blocks import Block
from lodger.engine.recurrence.rrule.leftover import Sorter, TooMany
from lodger.engine.recurrence.rrule.phase import Phase
from lodger.engine.recurrence.rrule.relative import as_days
from lodger.engine.recurrence.rule import Recurrence
from lodger.engine.recurrence.shifted_days import named_years
from lodger.engine.recurrence.stretched import ALL, ANY_TIME
from lodger.engine.recurrence.year_kinds import KindMasks
from lodger.engine.recurrence.zoned import Zoned
from lodger.engine.recurrence.zones import Zone

#: Closed slots, or stretches, that may follow one another without a free slot between them.
MOST_IN_A_ROW = 96
#: The same for exclusions that are asked only on days near a change of the clocks.
MOST_NEAR_CHANGES = 2000
#: Stretches of a day that are looked at one by one.
_MANY_RUNS = 3000
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


def few_in_a_row(source: Recurrence, doubts: Sequence[Closing], here: Zone) -> bool:
    """Whether it is proved that at most :data:`MOST_IN_A_ROW` times in a row a slot of the rule is found closed.

    Args:
        source: the rule, without what is surely closed where it could be taken away.
        doubts: what exclusions can close besides, on the wall clock of a zone.
        here: that zone.
    """
    if not doubts:
        return True
    surely: list[Block] = []
    if isinstance(source, Every):
        needs = _of_interval(source, here)
        # Only what one exclusion closes is jumped over together: two that take turns are asked in turn.
        each = max(doubts, key=lambda said: sum(taken.block.allowed.total() for taken in said.surely if taken.block))
        blocks = (taken.block for taken in each.surely)
        surely = [block for block in blocks if block is not None and block.step is None]
    elif isinstance(source, Zoned):
        needs = [_needs(part) for each in classes_of(source.local) for part in _by_days(each)]
    else:
        return True  # single instants are free or not
    runs = sum(each.runs_a_day for each in doubts)
    # Single days in doubt may lie within, before and after what else is in doubt.
    singly = sum(each.single_days for each in doubts)
    lasting = [each for each in doubts if each.doubt]
    if not lasting:
        return singly * runs <= MOST_IN_A_ROW
    most = MOST_NEAR_CHANGES if all(each.rare for each in lasting) else MOST_IN_A_ROW
    rooms = 1 + sum(bool(each.single_days) for each in doubts)
    most = (most - min(singly * runs, most)) // rooms
    shut = 0
    for each in lasting:
        for block in each.doubt:
            shut |= block.times
    # On the day of a change the free slot may be one that is skipped: then the row goes on to the next free day.
    rows = 2 if here.still else 3
    if all(_is_free(need, shut) for need in needs):
        if rows * runs <= most:
            return True
        return all(each.tight for each in lasting) and all(rows * _row(need, shut) <= most for need in needs)
    if rows * runs > most:
        return False
    days = _most_in_doubt(needs, lasting, surely) + 2
    return (days if here.still else 2 * days) * runs <= most


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


def _is_free(need: _Needs, shut: int) -> bool:
    """Whether a day has a slot at a time that is not shut."""
    left = need.times & ~shut
    if not left or not need.stretch_s:
        return bool(left)
    step = need.row.step if need.row is not None else None
    if step is None:
        around = left | left << DAY_S
        return _has_run(around, need.stretch_s)
    # Steps come at every position only when they drift by one: of the others they pass, nothing has to be open.
    flags, every = timeset.flags_of(left, DAY_S), gcd(step.n, DAY_S // step.unit_s)
    first = step.origin % every
    tables = (
        flags[offset + first * step.unit_s :: every * step.unit_s] for offset in timeset.listed(step.inside.bits())
    )
    return any(max(map(len, table.split(b"\0"))) >= step.n // every for table in tables)


def _has_run(bits: int, length: int) -> bool:
    have = 1
    while bits and have < length:
        more = min(have, length - have)
        bits &= bits >> more
        have += more
    return bool(bits)


def _row(need: _Needs, shut: int) -> int:
    """Most stretches of what is shut that follow one another without a slot between them."""
    starts = shut & ~(shut << 1)
    if starts.bit_count() > _MANY_RUNS:
        return MOST_IN_A_ROW if need.stretch_s > 1 else _dense_row(need.times, shut)
    ends = timeset.listed(shut & ~(shut >> 1))
    left, row, most = need.times & ~shut, 1, 1
    begins = timeset.listed(starts)
    for end, begin in zip(ends, begins[1:], strict=False):
        between = left >> end + 1 & (1 << begin - end - 1) - 1
        hit = _has_run(between, need.stretch_s) if need.stretch_s else bool(between)
        row = 1 if hit else row + 1
        most = max(most, row)
    return most


def _dense_row(times: int, shut: int) -> int:
    """Most shut slots of a day in a row."""
    row = most = 0
    for at in timeset.listed(times):
        row = row + 1 if shut >> at & 1 else 0
        most = max(most, row)
    return most


def _most_in_doubt(needs: Sequence[_Needs], doubts: Sequence[Closing], surely: Sequence[Block]) -> int:
    """Most days in doubt one after another, days without slots aside; the whole calendar when that is not known.

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
        return MAX_YEAR * 366
    try:
        open_days, closed_days = _sorter(blocks, asked), _sorter(surely, asked)
    except TooMany:
        return MAX_YEAR * 366
    free = busy = at = 0
    ends_free = ends_busy = False
    chunks: list[tuple[int, int, int]] = []
    known: dict[tuple[int, int], bool] = {}
    for year in asked:
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
        return MAX_YEAR * 366  # what repeats for ever has no free day
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
    for state, mask in sorter.sorted(year).items():
        untouched |= mask if state == 0 else 0
        for i, need in enumerate(needs):
            if here := mask if need.row is None else mask & need.row.mask(year):
                if (i, state) not in known:
                    known[i, state] = _is_free(need, ALL & ~sorter.states[state])
                busy |= here
                free |= here if known[i, state] else 0
    for need in needs:
        if need.row is None and need.stretch_s >= DAY_S:
            free |= _run_days(untouched, -(-need.stretch_s // DAY_S) + 1)
    return free, busy


def _run_days(bits: int, length: int) -> int:
    """Members with which a run of so many members begins."""
    have = 1
    while bits and have < length:
        more = min(have, length - have)
        bits &= bits >> more
        have += more
    return bits

"""The proof that an interval, which drifts through the day, is never found closed many times in a row: by its residues.

The slots of an interval, modulo a day or a week, go round a circle of so many places as the period's greatest common divisor
with it leaves. Which of these places an exclusion can close, on some day of some year and by any offset that its zone has ever
had, is one set; the longest row of such places on the circle bounds every question. Exclusions that are intervals themselves
close every k-th slot, wherever that is. Days on which more is closed than on others, holidays and changes of the clocks, are
few: a row can go on over them, and then the circle goes on where it was.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import gcd

from lodger.engine.recurrence import timeset
from lodger.engine.recurrence.civil import CYCLE_DAYS, DAY_S, year_start
from lodger.engine.recurrence.closing import leaves_of, windows_of
from lodger.engine.recurrence.coverage import Row
from lodger.engine.recurrence.dial import stride
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.freed import LEAP_S
from lodger.engine.recurrence.parts import parts_of
from lodger.engine.recurrence.rule import Gap, Recurrence
from lodger.engine.recurrence.stretched import dilated, turned
from lodger.engine.recurrence.window import Windows
from lodger.engine.recurrence.zoned import Zoned

_DAY_US = DAY_S * 1_000_000
#: Places of a circle that are looked at one by one.
_MOST_PLACES = 100_000
#: Days that come at most once in so many are told apart from the circle.
_SELDOM = 12
#: In more days than that an exclusion is held to open each day.
_MOST_DAYS = 40
#: Windows longer than that close whole weeks.
_LONGEST_S = _WEEK_S = 7 * DAY_S
_EVERY_MIDNIGHT = sum(1 << day * DAY_S for day in range(7))
_ROW = re.compile("1+")


def intervals_of(windows: Sequence[Windows]) -> tuple[list[Every], list[Windows]]:
    """Exclusions that close the single slots of an interval, and the others."""
    steps = [each.opens for each in windows if isinstance(each.opens, Every) and each.instants_only]
    return steps, [each for each in windows if not (isinstance(each.opens, Every) and each.instants_only)]


def longest_row(source: Every, windows: Sequence[Windows]) -> Row | None:
    """Most times in a row that a slot of the interval is found closed; None when no bound is found."""
    steps, others = intervals_of(windows)
    among = open_among(source, steps)
    shuts = [_shut(leaf, each) for each in others for leaf in leaves_of(each.opens)]
    if among is None or None in shuts:
        return None
    week = seldom = 0
    for shut in shuts:
        assert shut is not None
        week, seldom = week | shut.week, seldom | shut.seldom
    row = _on_circle(source, week, among)
    if row is None:
        return None
    if seldom:
        closed, apart = _runs(seldom)
        # Between two such stretches a whole turn must fit, or they would follow one another without a free slot.
        if apart * _DAY_US < (row + among + 2) * source.period_us:
            return None
        row = 2 * (row + among) + -(-closed * _DAY_US // source.period_us) + 2
    # A window is left in one step, however many slots it closes; what steps close between two of them is asked for each.
    days = row * source.period_us // _DAY_US + 2
    opened = sum(shut.opened(days) for shut in shuts if shut is not None)
    return Row(min(row, (opened + 1) * among), row * source.period_us // (LEAP_S * 1_000_000) + 2)


@dataclass(frozen=True, slots=True)
class _Shut:
    """When a wall-clock exclusion can be closed.

    Attributes:
        week: seconds of a week that begins as 1970 does, in UTC.
        seldom: days of the 400-year cycle on which it is closed at other times, too.
        blocks: days of the cycle on which it opens, and how many windows it opens on each of them at most.
        reach: so many days a window lasts at most.
    """

    week: int
    seldom: int
    blocks: tuple[tuple[int, int], ...]
    reach: int

    def opened(self, days: int) -> int:
        """How many windows can be open in so many days."""
        return sum(many * _within(on, days + self.reach) for on, many in self.blocks)


def _shut(opens: Recurrence, window: Windows) -> _Shut | None:
    if not isinstance(opens, Zoned) or (window.length_s or 0) > _LONGEST_S:
        return None
    week = seldom = 0
    blocks = []
    length = DAY_S + opens.zone.largest_change if window.whole_days else window.length_s or 1
    reach = length // DAY_S + 2
    for part in parts_of(opens.local):
        if part.blocks is None:
            return None
        for block in part.blocks:
            days = block.allowed.cycle()
            blocks.append((days, windows_of(block)))
            if block.allowed.total() * _SELDOM <= CYCLE_DAYS:
                for far in range(-1, reach):
                    at = far % CYCLE_DAYS
                    seldom |= (days << at | days >> CYCLE_DAYS - at) & (1 << CYCLE_DAYS) - 1
            else:
                week |= _in_week(days, block.times)
    moved = 0
    for offset in opens.zone.offsets:
        moved |= turned(week, -offset, _WEEK_S)
    if week and opens.gap is Gap.NEXT:
        for at in opens.zone.change_times():
            moved |= turned(_EVERY_MIDNIGHT, at, _WEEK_S)
    moved = dilated(moved, min(length, _WEEK_S))
    return _Shut((moved | moved >> _WEEK_S) & (1 << _WEEK_S) - 1, seldom, tuple(blocks), reach)


def most_within(days: int, length: int) -> int:
    """Most days of the cycle among so many neighbouring ones, counted for all of them at once: plane n has the bits worth 2**n."""
    planes: list[int] = []
    days |= days << CYCLE_DAYS
    for far in range(length):
        carry = days >> far & (1 << CYCLE_DAYS) - 1
        for i, plane in enumerate(planes):
            planes[i], carry = plane ^ carry, plane & carry
        if carry:
            planes.append(carry)
    most, among = 0, (1 << CYCLE_DAYS) - 1
    for i in reversed(range(len(planes))):
        if among & planes[i]:
            among, most = among & planes[i], most | 1 << i
    return most


def _within(days: int, length: int) -> int:
    return most_within(days, length) if length <= _MOST_DAYS else length


def open_among(source: Every, steps: Sequence[Every]) -> int | None:
    """Among so many slots in a row at least one is in none of the other intervals; None when that is not known."""
    shares = []
    for each in steps:
        common = gcd(source.period_us, each.period_us)
        if (source.anchor_us - each.anchor_us) % common:
            continue  # they never meet
        shares.append(each.period_us // common)
    for among in range(1, 2 * len(shares) + 64):
        if sum(-(-among // share) for share in shares) < among:
            return among
    return None


def _on_circle(source: Every, shut: int, among: int) -> int | None:
    """Longest row of slots of which fewer than ``among`` in a row lie outside of what is shut."""
    for days in (7, 1):
        around = days * _DAY_US
        places = around // gcd(source.period_us, around)
        if places <= _MOST_PLACES:
            break
    else:
        return 0 if not shut else None
    if days == 1:
        shut = _folded(shut)
    flags = timeset.flags_of(shut, days * DAY_S)
    step, at = source.period_us % around, source.anchor_us % around
    row = bytearray(places)
    for place in range(places):
        row[place] = flags[at // 1_000_000]
        at = (at + step) % around
    # Open places too few in a row may all be closed by the other intervals.
    runs = [(bool(value), len(list(group))) for value, group in groupby(row)]
    if runs[0][0] == runs[-1][0] and len(runs) > 1:
        runs = [(runs[0][0], runs[0][1] + runs[-1][1]), *runs[1:-1]]
    free = [i for i, (closed, length) in enumerate(runs) if not closed and length >= among]
    if not free:
        return None
    turned = [*runs[free[0] :], *runs[: free[0]]]
    longest = here = 0
    for closed, length in turned:
        here = 0 if not closed and length >= among else here + length
        longest = max(longest, here)
    return longest + 2 * (among - 1)


def _in_week(days: int, times: int) -> int:
    """Times on the weekdays that days of the cycle are, in a week that begins with January 1, 1970."""
    found, first = 0, year_start(400)
    for day in range(7):
        if days & stride(day, CYCLE_DAYS, 7):
            found |= times << (first + day) % 7 * DAY_S
    return found


def _folded(week: int) -> int:
    """Seconds of the day of those of a week."""
    day, found = (1 << DAY_S) - 1, 0
    while week:
        found |= week & day
        week >>= DAY_S
    return found


def _runs(days: int) -> tuple[int, int]:
    """Longest run of days of the cycle, and the shortest stretch between two, in days."""
    marks = f"{days:0{CYCLE_DAYS}b}" * 2
    inner = marks.strip("0")
    apart = min(map(len, re.findall("0+", inner)), default=CYCLE_DAYS)
    return max(map(len, _ROW.findall(marks))), apart

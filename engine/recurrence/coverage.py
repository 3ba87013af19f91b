"""Whether exclusions leave a rule free slots at short distances: proved over whole calendars before a schedule is kept.

A question about a schedule walks from excluded slot to excluded slot. That is short when every few days have a time that
no exclusion can reach, and such days are found for all years at once: a set of days is one integer, a bit per day.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import lcm

from lodger.engine.recurrence import timeset
from lodger.engine.recurrence.civil import CYCLE_DAYS, CYCLE_YEARS, DAY_S, MAX_YEAR, days_in_year, year_start
from lodger.engine.recurrence.pattern import Pattern

_FIRST_YEAR = 1970
_BUSY = re.compile("1+")
_ENDLESS = (MAX_YEAR - 1970) * 365 * DAY_S
#: Which rules and which covers a class of days has, and its days.
_Parts = dict[tuple[tuple[bool, ...], tuple[bool, ...]], int]
#: Excluded slots or windows that may follow one another without a free slot between them.
MOST_IN_A_ROW = 2000


@dataclass(frozen=True, slots=True)
class Cover:
    """Times that an exclusion closes on days; ``sure`` when it closes all of them, else it may close some.

    Attributes:
        days: the days of a year (bit 0 is January 1).
        times: bits of the seconds of a day.
        steps: windows that close them, on one day.
        later: on how many days after such a day the times are closed too, and whether on the day itself.
    """

    days: Callable[[int], int]
    times: int
    steps: int
    sure: bool
    first: int
    cycle_years: int = 400
    named: bool = False
    later: tuple[int, int] = (0, 0)


def instants(pattern: Pattern) -> Cover:
    """Single instants that an exclusion of the same clock removes."""
    whole = not pattern.stepping and not pattern.chosen and pattern.last >= pattern.first
    sure = (whole or pattern.selected is not None) and pattern.last >= _ENDLESS
    return Cover(
        pattern.selected or pattern.days, pattern.times, pattern.times.bit_count(), sure, pattern.first,
        pattern.cycle_years, pattern.named is not None,
    )  # fmt: skip


class Calendar:
    """Sets of days over the years in which calendar and INTERVALs repeat together, at most over all years to come."""

    def __init__(self, years: int) -> None:
        self.repeats = _FIRST_YEAR + years <= MAX_YEAR
        self._years = range(_FIRST_YEAR, min(_FIRST_YEAR + years, MAX_YEAR + 1))
        self.size = year_start(self._years.stop) - year_start(_FIRST_YEAR)

    def days(self, of_year: Callable[[int], int], *, cyclic: bool) -> int:
        """One integer of all the days; ``cyclic`` when the rule's days repeat after 400 years."""
        years = self._years[:CYCLE_YEARS] if cyclic else self._years
        found = 0
        for at in range(0, len(years), 100):
            chunk, begin = 0, year_start(years[at])
            for year in years[at : at + 100]:
                chunk |= (of_year(year) & (1 << days_in_year(year)) - 1) << year_start(year) - begin
            found |= chunk << begin - year_start(_FIRST_YEAR)
        have = CYCLE_DAYS
        while cyclic and have < self.size:
            found |= found << have
            have *= 2
        return found & (1 << self.size) - 1


def verdict(rule: Pattern, covers: Sequence[Cover]) -> bool | int | None:
    """Decide one rule: True when free slots come after few excluded ones for ever, None when nothing is proved.

    Returns:
        Else the local second from which on no slot is left; up to there free slots come after few excluded ones. It is
        not after ``rule.first`` when none is left at all.
    """
    cut: int | None = None
    while True:
        found = leaves_free([rule], covers)
        if found is not False:
            return found if cut is None or found is None else cut
        cut = max((cover.first for cover in covers if cover.sure), default=rule.first)
        if cut <= rule.first:
            return cut
        covers = [cover for cover in covers if cover.first < cut]


def leaves_free(rules: Sequence[Pattern], covers: Iterable[Cover]) -> bool | None:
    """Whether free slots come after few excluded ones for ever; False when there is none once all covers have begun.

    None when neither is proved.
    """
    closing = list(covers)
    all_of: list[Pattern | Cover] = [*rules, *closing]
    years = lcm(*(each.cycle_years for each in all_of))
    calendar = Calendar(MAX_YEAR if any(each.named for each in all_of) else years)
    days = [calendar.days(p.selected or p.days, cyclic=not p.named and p.cycle_years == CYCLE_YEARS) for p in rules]
    shut = []
    for cover in closing:
        on = calendar.days(cover.days, cyclic=not cover.named and cover.cycle_years == CYCLE_YEARS)
        shut.append(_spread(on, *cover.later, cyclic=calendar.size if calendar.repeats else None))
    parts: _Parts = {((), ()): (1 << calendar.size) - 1}
    for mask in days:
        parts = _split(parts, mask, 0)
    parts = {key: part for key, part in parts.items() if any(key[0])}
    for mask in shut:
        parts = _split(parts, mask, 1)
    free = busy = 0
    longest, steps = 0, 1
    untouched = 0
    never = True
    for (here, closed), part in parts.items():
        possible = certain = 0
        count = 0
        for cover, on in zip(closing, closed, strict=True):
            if on:
                possible |= cover.times
                certain |= cover.times if cover.sure else 0
                count += cover.steps
        named = 0
        for pattern, on in zip(rules, here, strict=True):
            named |= pattern.times if on else 0
        never = never and not named & ~certain
        untouched |= 0 if possible else part
        row = _row(rules, here, possible, named)
        if row is None:
            busy |= part
            steps = max(steps, min(count, named.bit_count()))
        else:
            free |= part
            longest = max(longest, min(row, count + 1))
    if never:
        return False
    for pattern in rules:
        if pattern.stretch_s is not None and not pattern.chosen and pattern.times == (1 << DAY_S) - 1:
            # A step of several days ends within so many days of which nothing is closed.
            free |= _run(untouched, -(-pattern.stretch_s // DAY_S) + 1)
    busy &= ~free
    if not free:
        return None
    return ((_most_between(free, busy) + 2) * steps + 2 * longest <= MOST_IN_A_ROW) or None


def _row(rules: Sequence[Pattern], here: Sequence[bool], possible: int, named: int) -> int | None:
    """Most excluded slots in a row beside a free one on such a day; None when no slot is surely free."""
    left = 0
    for pattern, on in zip(rules, here, strict=True):
        if not on or pattern.chosen:
            continue
        open_times = pattern.times & ~possible
        if pattern.stretch_s is None or _run(_widened(open_times, pattern.unit_s), pattern.stretch_s + pattern.unit_s):
            left |= open_times
    if not left:
        return None
    row = most = 0
    if not named & possible:
        return 0
    for at in timeset.listed(named):
        row = 0 if left >> at & 1 else row + 1
        most = max(most, row)
    return most


def _run(bits: int, length: int) -> int:
    """Members with which a run of so many members begins."""
    have = 1
    while bits and have < length:
        more = min(have, length - have)
        bits &= bits >> more
        have += more
    return bits


def _widened(bits: int, length: int) -> int:
    """Each member becomes a run of so many."""
    return _spread(bits, 0, length - 1, cyclic=None)


def _spread(days: int, first: int, last: int, *, cyclic: int | None) -> int:
    """Days from ``first`` to ``last`` days later; around the circle of so many days when ``cyclic``."""
    width, have = last - first + 1, 1
    while have < width:
        more = min(have, width - have)
        days |= days << more
        have += more
    days <<= first
    if cyclic is not None:
        while days >> cyclic:
            days = days >> cyclic | days & (1 << cyclic) - 1
    return days


def _split(parts: _Parts, mask: int, side: int) -> _Parts:
    found: _Parts = {}
    for key, days in parts.items():
        for on, part in ((True, days & mask), (False, days & ~mask)):
            if part:
                grown = (*key[side], on)
                found[(grown, key[1]) if side == 0 else (key[0], grown)] = part
    return found


def _most_between(free: int, busy: int) -> int:
    """Most busy days in a row, those without slots left out."""
    marked = f"{int(f'{free:b}', 16) * 2 + int(f'{busy:b}', 16):x}".replace("0", "")
    return max(map(len, _BUSY.findall(marked)), default=0)

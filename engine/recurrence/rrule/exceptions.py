"""What EXRULE, EXDATE and whole excluded days take away from one rule, a run at a time.

An EXRULE that names every time of day that the rule can have removes whole days; one that names every minute and second
removes whole hours, and so on. So a run of excluded slots is left in one step, and days that such EXRULEs remove are
taken out of the rule's own day masks, where an empty set is proved and not walked.
"""

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.parts import Freq, Rule
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.unit_times import UnitTimes
from lodger.engine.recurrence.rrule.year_masks import FULL, YearMasks

_HOURS, _SIXTY = frozenset(range(24)), frozenset(range(60))


class Shape:
    """Every hour, minute and second that a filled rule can have."""

    def __init__(self, rule: Rule) -> None:
        self.hours = frozenset(rule.byhour) or _HOURS
        self.minutes = frozenset(rule.byminute) or _SIXTY
        self.seconds = frozenset(rule.bysecond) or _SIXTY


class ExceptionRule:
    """One EXRULE, and how far it excludes on from an excluded slot."""

    def __init__(self, sequence: RuleSequence) -> None:
        self.sequence = sequence
        rule, base = sequence.filled, sequence.base
        # Its members are all of its times on all of its days: no positions, no count, no steps between the times.
        whole = not rule.bysetpos and rule.count is None and (rule.freq < Freq.HOURLY or rule.interval == 1)
        self._days = base.days if whole and isinstance(base, UnitTimes) else None
        self._shape = Shape(rule)

    def covers(self, local: int) -> bool:
        """Whether the local second is excluded."""
        return self.sequence.next_local(local, inclusive=True) == local

    def removed_from(self, shape: Shape) -> YearMasks | None:
        """The days of every year on which it leaves nothing of a rule with that shape, if it can be said for ever."""
        rule = self.sequence.filled
        if self._days is None or rule.interval > 1 or rule.until is not None or not self._all_times(shape):
            return None
        return YearMasks(rule)

    def _all_times(self, shape: Shape) -> bool:
        mine = self._shape
        return shape.hours <= mine.hours and shape.minutes <= mine.minutes and shape.seconds <= mine.seconds

    def run(self, local: int, shape: Shape) -> tuple[int, int]:
        """First and last second of a stretch around an excluded second in which it leaves nothing of such a rule."""
        if self._days is None or not shape.seconds <= self._shape.seconds:
            return local, local
        day, second = civil.split(local)
        begin = day * civil.DAY_S
        if not shape.minutes <= self._shape.minutes:
            first, last = _stretch(second // 60 % 60, self._shape.minutes, 60)
            begin += second // 3600 * 3600
            first, last = begin + first * 60, begin + last * 60 + 59
        elif not shape.hours <= self._shape.hours:
            first, last = _stretch(second // 3600, self._shape.hours, 24)
            first, last = begin + first * 3600, begin + last * 3600 + 3599
        else:
            first = _first_of_run(self._days, day) * civil.DAY_S
            last = _last_of_run(self._days, day) * civil.DAY_S + civil.DAY_S - 1
        return max(first, self.sequence.start), min(last, self.sequence.until)


def _stretch(value: int, members: frozenset[int], size: int) -> tuple[int, int]:
    first = last = value
    while first > 0 and first - 1 in members:
        first -= 1
    while last + 1 < size and last + 1 in members:
        last += 1
    return first, last


def _last_of_run(days: Days, day: int) -> int:
    """Last day of the run of members that begins with this one."""
    year = civil.civil(day)[0]
    end = min(civil.MAX_YEAR, year + (400 if days.phase is None else days.phase.years))
    bits = (~days.mask(year) & FULL[civil.is_leap(year)]) >> (day - civil.year_start(year))
    if bits:
        return day + (bits & -bits).bit_length() - 2
    for each in range(year + 1, end + 1):
        bits = ~days.mask(each) & FULL[civil.is_leap(each)]
        if bits:
            return civil.year_start(each) + (bits & -bits).bit_length() - 2
    return civil.MAX_DAY


def _first_of_run(days: Days, day: int) -> int:
    year = civil.civil(day)[0]
    end = max(civil.MIN_YEAR, year - (400 if days.phase is None else days.phase.years))
    bits = ~days.mask(year) & ((2 << (day - civil.year_start(year))) - 1)
    if bits:
        return civil.year_start(year) + bits.bit_length()
    for each in range(year - 1, end - 1, -1):
        bits = ~days.mask(each) & FULL[civil.is_leap(each)]
        if bits:
            return civil.year_start(each) + bits.bit_length()
    return civil.MIN_DAY

"""The parse tree of a rule in English: clauses, each of which is one rule of days and times."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.civil import DAY_S, UNANCHORED
from lodger.engine.recurrence.calendar.dial import members
from lodger.engine.recurrence.calendar.yeardays import Selection, nth_of, numbered, on_weekdays
from lodger.engine.recurrence.rrule.parts import Freq, Rule
from lodger.engine.recurrence.rrule.phase import selection_of

WORKDAYS, WEEKEND = 0b0011111, 0b1100000
HOUR_S = 3600
_FREQUENCIES = {"day": Freq.DAILY, "week": Freq.WEEKLY, "month": Freq.MONTHLY, "year": Freq.YEARLY}


class Date(NamedTuple):
    """A date; without a year, of every year or the next one."""

    year: int | None
    month: int
    day: int


def last_second(date: Date) -> int:
    """Return the last local second of a date with its year."""
    return civil.local_at(date.year or 1, date.month, date.day) + DAY_S - 1


class Series(NamedTuple):
    """Times of day ``first``, ``first + step``, … up to ``last``, which may lie after midnight (smaller than ``first``)."""

    first: int
    last: int
    step: int = 0

    def times(self) -> list[int]:
        """Return the times as seconds of the day."""
        end = self.last + (DAY_S if self.last < self.first else 0)
        return [each % DAY_S for each in range(self.first, end + 1, self.step or DAY_S)]

    def whole_day(self) -> bool:
        """Whether the times go round the clock without an edge, so that they follow the running clock through a change of offset."""
        return self.step > 0 and self.first < self.step and self.last - self.first + self.step == DAY_S


@dataclass(frozen=True, slots=True)
class Days:
    """Days that fulfil every condition given; with none, every day.

    Attributes:
        weekdays: bits 0 (Monday) to 6.
        month_days: from 1; -1 is the last day of the month.
        nth: which of the days with these weekday bits in a month; -1 is the last.
        months: bits 1 to 12.
        date: one date.
    """

    weekdays: int = 0
    month_days: tuple[int, ...] = ()
    nth: tuple[tuple[int, int], ...] = ()
    months: int = 0
    date: Date | None = None

    def of_month(self, year: int, month: int, *, exact: bool) -> int:
        """Bits of the days of a month from bit 0; dates with a year only in an exact year."""
        if self.months and not self.months >> month & 1:
            return 0
        length, first = civil.days_in_month(year, month), civil.weekday(civil.day_of(year, month, 1))
        found = (1 << length) - 1
        if self.weekdays:
            found &= on_weekdays(self.weekdays, first)
        if self.month_days:
            found &= numbered(self.month_days, length)
        if self.nth:
            whole = (1 << length) - 1
            found &= sum({nth_of(on_weekdays(weekdays, first) & whole, number) for number, weekdays in self.nth})
        if self.date is not None:
            there = self.date.month == month and (self.date.year is None or (exact and self.date.year == year))
            found &= 1 << self.date.day - 1 if there else 0
        return found


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule.

    Attributes:
        days: alternatives; none for every day.
        months: bits 1 to 12; 0 for every month.
        step: every n-th ``day``, ``week``, ``month`` or ``year`` from the start; n is 0 without.
        but: days that are left out.
        times: times of day; empty when ``period_us`` counts, or for the start's time of day.
        period_us: an interval that runs on through days, microseconds.
        first, last: bounds; a date without a year is the first one from the start on.
        begins: local second of the start with its time of day.
        bounded: no slot lies before it; otherwise steps are only counted from it.
    """

    days: tuple[Days, ...] = ()
    months: int = 0
    step: tuple[int, str] = (0, "")
    but: tuple[Days, ...] = ()
    times: tuple[Series, ...] = ()
    period_us: int = 0
    first: Date | None = None
    last: Date | None = None
    begins: int | None = None
    bounded: bool = True

    def needs_start(self) -> bool:
        """Whether the clause's slots depend on when the schedule starts."""
        undated = any(bound is not None and bound.year is None for bound in (self.first, self.last))
        return undated or (self.first is None and self.begins is None and bool(self.period_us or self.step[0]))

    def follows_start(self) -> bool:
        """Whether the clause runs at the time of day at which the schedule starts: it has a step of days or weeks without a time."""
        return not self.times and not self.period_us and not self.days

    def of_year(self, year: int, *, exact: bool = True) -> int:
        """Days of a year, bit 0 is January 1, before the step and the bounds choose."""
        found = 0
        before = civil.DAYS_BEFORE_MONTH[civil.is_leap(year)]
        for month in members(self.months) if self.months else range(1, 13):
            days = 0
            for each in self.days or (Days(),):
                days |= each.of_month(year, month, exact=exact)
            for each in self.but:
                days &= ~each.of_month(year, month, exact=exact)
            found |= days << before[month]
        return found

    def years(self) -> set[int]:
        """Return the years that the clause's dates name."""
        return {each.date.year for each in (*self.days, *self.but) if each.date is not None and each.date.year}

    def selection(self) -> Selection | None:
        """Return the days that the clause's step selects; None without a step of days."""
        count, unit = self.step
        if count < 2:
            return None
        day = (UNANCHORED if self.begins is None else self.begins) // DAY_S
        return selection_of(Rule(_FREQUENCIES[unit], interval=count), day)

    def started(self, start: int | None, *, bounded: bool) -> "Clause":
        """Return the clause with its bounds as full dates and its own time of day.

        Args:
            start: local second of the schedule's start, when there is one.
            bounded: whether it is the first instant that may be a slot.
        """
        first, last, begins = self.first, self.last, self.begins
        if start is not None:
            first, last = (dated(bound, start // DAY_S) for bound in (first, last))
        if first is not None:
            begins = civil.local_at(first.year or 1, first.month, first.day) + (begins or 0) % DAY_S
            bounded = self.bounded
        elif begins is None:
            begins = start
        times = self.times
        if not times and not self.period_us:
            at = begins % DAY_S if begins is not None and self.follows_start() else 0
            times = (Series(at, at),)
        days, step = self.days, self.step
        if step[1] == "week" and not days:
            weekday = civil.weekday((UNANCHORED if begins is None else begins) // DAY_S)
            days, step = (Days(1 << weekday),), step if step[0] > 1 else (0, "")
        return replace(self, first=first, last=last, begins=begins, times=times, days=days, step=step, bounded=bounded)


def dated(date: Date | None, start: int) -> Date | None:
    """Return a date without a year as the first one from a day on; others unchanged."""
    if date is None or date.year is not None:
        return date
    year = civil.civil(start)[0]
    for each in range(year, year + 9):
        if date.day <= civil.days_in_month(each, date.month) and civil.day_of(each, date.month, date.day) >= start:
            return date._replace(year=each)
    return date


@dataclass(frozen=True, slots=True)
class Phrase:
    """A whole text: one clause or several, in one zone; one that is an interval stands alone."""

    clauses: tuple[Clause, ...]
    zone: str | None = None

    def needs_start(self) -> bool:
        """Whether the slots depend on when the schedule starts."""
        return any(each.needs_start() for each in self.clauses)

    def follows_start(self) -> bool:
        """Whether some clause runs at its start's time of day or counts from there."""
        return any(each.follows_start() or each.needs_start() for each in self.clauses)

    def names_days(self) -> bool:
        """Whether the phrase names days and no time of day."""
        return not any(each.times or each.period_us for each in self.clauses)

    def counts_days(self) -> bool:
        """Whether the phrase counts days from the start, rather than hours, minutes or seconds."""
        return not any(each.period_us for each in self.clauses)

"""Days that the INTERVAL of a rule down to DAILY selects, counted from DTSTART."""

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.dial import stride
from lodger.engine.recurrence.calendar.yeardays import Selection
from lodger.engine.recurrence.rrule.parts import Freq, Rule
from lodger.engine.recurrence.rrule.year_masks import EVERY_DAY, MONTH, span, week_one, week_year


class Years:
    """Every n-th calendar year."""

    def __init__(self, interval: int, first: int) -> None:
        self._n, self._first = interval, first

    def of_year(self, year: int) -> int:
        """Return all days of a year if INTERVAL selects it, else none; as bits."""
        return 0 if (year - self._first) % self._n else EVERY_DAY


class WeekYears:
    """Every n-th week-numbering year; its days may lie in the calendar years beside it."""

    def __init__(self, interval: int, first: int, wkst: int) -> None:
        self._n, self._first, self._wkst = interval, first, wkst

    def of_year(self, year: int) -> int:
        """Return the days of a calendar year that belong to a selected week-numbering year, as bits."""
        start, days = civil.year_start(year), 0
        for each in (year - 1, year, year + 1):
            if (each - self._first) % self._n == 0:
                days |= span(week_one(each, self._wkst) - start, week_one(each + 1, self._wkst) - start)
        return days


class Months:
    """Every n-th calendar month; months are counted as year * 12 + month - 1."""

    def __init__(self, interval: int, first: int) -> None:
        self._n, self._first = interval, first

    def of_year(self, year: int) -> int:
        """Return the days of a year in selected months, as bits."""
        months = MONTH[civil.is_leap(year)]
        return sum(months[index + 1] for index in range((self._first - year * 12) % self._n, 12, self._n))


class Strides:
    """The first days of every period of so many days, counted from a day."""

    def __init__(self, period: int, first: int, width: int) -> None:
        self._period, self._first, self._width = period, first, width
        #: Days of a year that begins with a selected period, from a period before it on.
        begins = stride(0, 366 + 2 * period, period) if period <= 366 else 0
        self._pattern = sum(begins << day for day in range(width))

    def of_year(self, year: int) -> int:
        """Return the days of a year in selected periods, as bits."""
        into = (civil.year_start(year) - self._first) % self._period
        if self._pattern:
            return self._pattern >> into & EVERY_DAY
        return span(-into, self._width - into) | span(self._period - into, self._period - into + self._width)


def selection_of(rule: Rule, start_day: int) -> Selection | None:
    """Days that INTERVAL selects for a FREQ down to DAILY; None when it selects every one."""
    n = rule.interval
    if n == 1:
        return None
    year, month, _ = civil.civil(start_day)
    if rule.freq is Freq.YEARLY:
        if rule.byweekno:
            return WeekYears(n, week_year(start_day, rule.wkst), rule.wkst)
        return Years(n, year)
    if rule.freq is Freq.MONTHLY:
        return Months(n, year * 12 + month - 1)
    if rule.freq is Freq.WEEKLY:
        return Strides(7 * n, start_day - (civil.weekday(start_day) - rule.wkst) % 7, 7)
    return Strides(n, start_day, 1)

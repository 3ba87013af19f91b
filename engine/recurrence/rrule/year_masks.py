"""Days of a year that the day parts of a rule allow, as one integer of 366 bits per year."""

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.yeardays import nth_of, numbered, on_weekdays
from lodger.engine.recurrence.rrule.parts import Freq, Rule

FULL = ((1 << 365) - 1, (1 << 366) - 1)
EVERY_DAY = (1 << 366) - 1
#: MONTH[leap][month]: the days of a month.
MONTH = tuple(
    (0, *(((1 << table[m + 1] - table[m]) - 1) << table[m] for m in range(1, 13))) for table in civil.DAYS_BEFORE_MONTH
)
_WEEK = (1 << 7) - 1


def span(first: int, end: int) -> int:
    """Return the bits from ``first`` to before ``end``, cut to the 366 days of a year."""
    first, end = max(first, 0), min(end, 366)
    return ((1 << (end - first)) - 1) << first if end > first else 0


def week_one(year: int, wkst: int) -> int:
    """First day of the week with number 1: the first with at least four days in the year (RFC 5545 §3.3.10)."""
    fourth = civil.year_start(year) + 3
    return fourth - (civil.weekday(fourth) - wkst) % 7


def week_year(day: int, wkst: int) -> int:
    """Week-numbering year of a day; the years before 1 and after 9999 are possible at the calendar's edges."""
    year = civil.civil(day)[0]
    if day >= week_one(year + 1, wkst):
        return year + 1
    return year if day >= week_one(year, wkst) else year - 1


class YearMasks:
    """The day parts of a filled rule."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def of_year(self, year: int) -> int:
        """Days of a year that the day parts allow; bit 0 is January 1."""
        allowed = self.without_weeks(year)
        return allowed & self._weeks(year) if self._rule.byweekno and allowed else allowed

    def without_weeks(self, year: int) -> int:
        """Return the days of a year that all parts but BYWEEKNO allow, as bits."""
        rule = self._rule
        leap = civil.is_leap(year)
        start = civil.year_start(year)
        length = 366 if leap else 365
        allowed = FULL[leap]
        if rule.bymonth:
            allowed &= sum(MONTH[leap][month] for month in rule.bymonth)
        if rule.byyearday:
            allowed &= numbered(rule.byyearday, length)
        if rule.bymonthday and allowed:
            allowed &= self._month_days(leap)
        if rule.byday and allowed:
            allowed &= self._weekdays(civil.weekday(start), leap)
        return allowed

    def _month_days(self, leap: bool) -> int:
        """Return the days of a year that BYMONTH and BYMONTHDAY allow, as bits."""
        table = civil.DAYS_BEFORE_MONTH[leap]
        days = 0
        for month in self._rule.bymonth or range(1, 13):
            first, end = table[month], table[month + 1]
            days |= numbered(self._rule.bymonthday, end - first) << first
        return days

    def _weeks(self, year: int) -> int:
        """Return the days of a year in its chosen weeks, as bits."""
        wkst, start = self._rule.wkst, civil.year_start(year)
        days = 0
        for each in (year - 1, year, year + 1):
            one = week_one(each, wkst) - start
            inside = self._in_weeks((week_one(each + 1, wkst) - start - one) // 7)
            days |= inside << one if one >= 0 else inside >> -one
        return days & EVERY_DAY

    def _in_weeks(self, weeks: int) -> int:
        """Return the days of a week-numbering year with so many weeks that lie in chosen weeks, as bits from its first day."""
        numbers = {each if each > 0 else weeks + 1 + each for each in self._rule.byweekno if abs(each) <= weeks}
        return sum(_WEEK << 7 * (number - 1) for number in numbers)

    def _weekdays(self, first_weekday: int, leap: bool) -> int:
        """Return the days of a year on chosen weekdays, as bits."""
        rule = self._rule
        full = FULL[leap]
        if rule.freq is Freq.MONTHLY or (rule.freq is Freq.YEARLY and rule.bymonth):
            periods = [MONTH[leap][month] for month in rule.bymonth or range(1, 13)]
        else:
            periods = [full]
        days = 0
        for ordinal, weekday in rule.byday:
            every = on_weekdays(1 << weekday, first_weekday) & full
            if ordinal == 0:
                days |= every
                continue
            for period in periods:
                inside = every & period
                days |= nth_of(inside, ordinal)
        return days

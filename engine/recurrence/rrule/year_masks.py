"""Which days of a year a rule's day parts allow, as one integer of 366 bits per kind of year.

The Gregorian calendar repeats after 400 years, and within them a year's days are decided by the weekday of January 1
and by which of the neighbouring years are leap years (weeks cross the year's edge). So a rule has at most
:data:`KINDS` different years, each computed once, when first asked for.
"""

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.parts import Freq, Rule

FULL = ((1 << 365) - 1, (1 << 366) - 1)
EVERY_DAY = (1 << 366) - 1


def _kinds() -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    seen: dict[tuple[int, ...], int] = {}
    kinds: list[int] = []
    years: list[int] = []
    counts: list[int] = []
    for year in range(2000, 2400):
        leaps = (civil.is_leap(each) for each in range(year - 2, year + 3))
        key = (civil.weekday(civil.year_start(year)), *leaps)
        if key not in seen:
            seen[key] = len(years)
            years.append(year)
            counts.append(0)
        kinds.append(seen[key])
        counts[seen[key]] += 1
    return tuple(kinds), tuple(years), tuple(counts)


#: Kind of each year of the cycle (index: year modulo 400), a year of each kind, and how many the cycle has of it.
KIND_OF, YEAR_OF, COUNT_OF = _kinds()
KINDS = len(YEAR_OF)

#: MONTH[leap][month]: the days of a month.
MONTH = tuple(
    (0, *(((1 << table[m + 1] - table[m]) - 1) << table[m] for m in range(1, 13))) for table in civil.DAYS_BEFORE_MONTH
)
_WEEKLY = sum(1 << day for day in range(0, 373, 7))


def span(first: int, end: int) -> int:
    """Bits first to end - 1, cut to the year's 366."""
    first, end = max(first, 0), min(end, 366)
    return ((1 << (end - first)) - 1) << first if end > first else 0


def weekday_bits(year_starts_on: int, weekday: int) -> int:
    """Every such weekday of a year."""
    return (_WEEKLY << ((weekday - year_starts_on) % 7)) & EVERY_DAY


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


class KindMasks:
    """Days allowed in each kind of year, computed when first asked for."""

    def __init__(self) -> None:
        self._cache: list[int | None] = [None] * KINDS
        self._total: int | None = None

    def mask(self, year: int) -> int:
        """Bit n is set when day n of the year (January 1 is 0) is allowed."""
        kind = KIND_OF[year % 400]
        found = self._cache[kind]
        if found is None:
            found = self._cache[kind] = self._compute(YEAR_OF[kind])
        return found

    def total(self) -> int:
        """Allowed days in 400 years."""
        if self._total is None:
            self._total = sum(self.mask(year).bit_count() * n for year, n in zip(YEAR_OF, COUNT_OF, strict=True))
        return self._total

    def empty(self) -> bool:
        """Whether no day of any year is allowed."""
        return not any(self.mask(year) for year in YEAR_OF)

    def contains(self, day: int) -> bool:
        """Whether the day is allowed."""
        year = civil.civil(day)[0]
        return bool(self.mask(year) >> (day - civil.year_start(year)) & 1)

    def _compute(self, year: int) -> int:
        raise NotImplementedError


class Without(KindMasks):
    """Allowed days minus the days of others."""

    def __init__(self, allowed: KindMasks, others: tuple[KindMasks, ...]) -> None:
        super().__init__()
        self._allowed, self._others = allowed, others

    def _compute(self, year: int) -> int:
        days = self._allowed.mask(year)
        for other in self._others:
            days &= ~other.mask(year)
        return days


class YearMasks(KindMasks):
    """The day parts of a filled rule."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self._rule = rule

    def _compute(self, year: int) -> int:
        rule = self._rule
        leap = civil.is_leap(year)
        start = civil.year_start(year)
        length = 366 if leap else 365
        allowed = FULL[leap]
        if rule.bymonth:
            allowed &= sum(MONTH[leap][month] for month in rule.bymonth)
        if rule.byyearday:
            days = 0
            for number in rule.byyearday:
                if abs(number) <= length:
                    days |= 1 << (number - 1 if number > 0 else length + number)
            allowed &= days
        if rule.bymonthday and allowed:
            allowed &= self._month_days(leap)
        if rule.byweekno and allowed:
            allowed &= self._weeks(year)
        if rule.byday and allowed:
            allowed &= self._weekdays(civil.weekday(start), leap)
        return allowed

    def _month_days(self, leap: bool) -> int:
        table = civil.DAYS_BEFORE_MONTH[leap]
        days = 0
        for month in self._rule.bymonth or range(1, 13):
            first, end = table[month], table[month + 1]
            for number in self._rule.bymonthday:
                if abs(number) <= end - first:
                    days |= 1 << (first + number - 1 if number > 0 else end + number)
        return days

    def _weeks(self, year: int) -> int:
        wkst, start = self._rule.wkst, civil.year_start(year)
        days = 0
        for each in (year - 1, year, year + 1):
            one = week_one(each, wkst) - start
            weeks = (week_one(each + 1, wkst) - start - one) // 7
            for number in self._rule.byweekno:
                if abs(number) <= weeks:
                    first = one + 7 * (number - 1 if number > 0 else weeks + number)
                    days |= span(first, first + 7)
        return days

    def _weekdays(self, first_weekday: int, leap: bool) -> int:
        rule = self._rule
        full = FULL[leap]
        if rule.freq is Freq.MONTHLY or (rule.freq is Freq.YEARLY and rule.bymonth):
            periods = [MONTH[leap][month] for month in rule.bymonth or range(1, 13)]
        else:
            periods = [full]
        days = 0
        for ordinal, weekday in rule.byday:
            every = weekday_bits(first_weekday, weekday) & full
            if ordinal == 0:
                days |= every
                continue
            for period in periods:
                inside = every & period
                days |= _nth_bit(inside, ordinal)
        return days


def _nth_bit(bits: int, ordinal: int) -> int:
    """Keep of weekly bits the n-th (from 1), or from the end when negative."""
    if not bits:
        return 0
    if ordinal > 0:
        at = (bits & -bits).bit_length() - 1 + 7 * (ordinal - 1)
    else:
        at = bits.bit_length() - 1 + 7 * (ordinal + 1)
    return bits & (1 << at) if at >= 0 else 0

"""The meaning of python-dateutil where it differs from RFC 5545, for rules that were given as its objects.

Such an object has fired by these rules already, so its slots are kept, faults included: weeks are those of the calendar
year and not of the week-numbering year, the last week of the year before is found by a formula with a slip, and WEEKLY
looks at the rest of DTSTART's week only.
"""

from functools import cache

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.dial import Dial, of_values
from lodger.engine.recurrence.rrule.parts import Freq, Rule
from lodger.engine.recurrence.rrule.set_positions import positions
from lodger.engine.recurrence.rrule.year_masks import FULL, YearMasks


@cache
def _weeks(year_starts_on: int, lengths: tuple[int, int], numbers: tuple[int, ...], wkst: int) -> int:
    """Days of a year that lie in numbered weeks, and up to 7 days after it; ``lengths``: of the year and the one before.

    Follows ``dateutil.rrule._iterinfo.rebuild``.
    """
    length, before = lengths
    first_wkst = week_one = (7 - year_starts_on + wkst) % 7
    if week_one >= 4:
        week_one = 0
        span = length + (year_starts_on - wkst) % 7
    else:
        span = length - week_one
    weeks = span // 7 + span % 7 // 4
    days = 0

    def mark(at: int) -> int:
        found = 0
        for _ in range(7):
            found |= 1 << at
            at += 1
            if (year_starts_on + at) % 7 == wkst:
                break
        return found

    for number in numbers:
        which = number + weeks + 1 if number < 0 else number
        if not 0 < which <= weeks:
            continue
        at = week_one
        if which > 1:
            at += (which - 1) * 7
            if week_one != first_wkst:
                at -= 7 - first_wkst
        days |= mark(at)
    if 1 in numbers:
        at = week_one + weeks * 7
        if week_one != first_wkst:
            at -= 7 - first_wkst
        if at < length:
            days |= mark(at)
    if week_one:
        if -1 in numbers:
            last = -1
        else:
            started = (year_starts_on - before) % 7
            its_week_one = (7 - started + wkst) % 7
            if its_week_one >= 4:
                last = 52 + (before + (started - wkst) % 7) % 7 // 4
            else:
                last = 52 + (length - week_one) % 7 // 4  # the slip: the length of this year, not of the one before
        if last in numbers:
            days |= (1 << week_one) - 1
    return days


def weeks_of(year: int, rule: Rule) -> int:
    """Days of a year, and up to 7 days after it, that lie in the rule's weeks."""
    lengths = (civil.days_in_year(year), civil.days_in_year(year - 1))
    return _weeks(civil.weekday(civil.year_start(year)), lengths, rule.byweekno, rule.wkst)


class DateutilMasks(YearMasks):
    """The day parts of a filled rule with BYWEEKNO."""

    def _weeks(self, year: int) -> int:
        rule = self._rule
        days = weeks_of(year, rule)
        if rule.freq is Freq.WEEKLY:  # a week is looked at in the year in which it begins
            edge = (rule.wkst - civil.weekday(civil.year_start(year))) % 7
            earlier = weeks_of(year - 1, rule) >> civil.days_in_year(year - 1)
            days = days >> edge << edge | earlier & (1 << edge) - 1
        return days & FULL[civil.is_leap(year)]


def first_week(rule: Rule, start: int) -> tuple[list[int], int] | None:
    """Members of a WEEKLY rule in DTSTART's week, and the second at which the week after it begins.

    None when DTSTART lies on the first day of its week: then the week is like every other.
    """
    day, _ = civil.split(start)
    rest = (rule.wkst - civil.weekday(day)) % 7
    if not rest:
        return None
    year = civil.civil(day)[0]
    masks = YearMasks(rule)
    days = []
    for each in range(day, min(day + rest, civil.MAX_DAY + 1)):
        there = civil.civil(each)[0]
        bits = masks.without_weeks(there)
        if rule.byweekno:
            weeks = weeks_of(year, rule)
            bits &= (weeks if there == year else weeks >> civil.days_in_year(year)) & FULL[civil.is_leap(there)]
        if bits >> each - civil.year_start(there) & 1:
            days.append(each)
    times = Dial(of_values(rule.byhour), of_values(rule.byminute), of_values(rule.bysecond))
    size = len(days) * times.count()
    picked = positions(rule.bysetpos, size) if rule.bysetpos else range(size)
    members = [days[at // times.count()] * civil.DAY_S + times.nth(at % times.count()) for at in picked]
    return [each for each in members if each >= start], (day + rest) * civil.DAY_S

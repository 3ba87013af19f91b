"""RFC 5545 rules read the slow way, day by day and step by step: what the engine is held against.

Nothing of the engine's arithmetic is used but its parser: dates come from ``datetime.date``.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import product

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.rrule.parser import Entry, RuleSet
from lodger.engine.recurrence.rrule.parts import UNIT_S, Freq, Rule

_EPOCH = date(1970, 1, 1)


def _week_one(year: int, wkst: int) -> int:
    """Ordinal of the first day of week 1: the week that holds January 4; years 0 and 10000 have one too."""
    if year < 1:
        fourth = date(1, 1, 4).toordinal() - 366
    elif year > 9999:
        fourth = date.max.toordinal() + 4
    else:
        fourth = date(year, 1, 4).toordinal()
    return fourth - ((fourth + 6) % 7 - wkst) % 7


def _week_of(day: date, wkst: int) -> tuple[int, int, int]:
    """Week-numbering year, week, and how many weeks that year has."""
    year, at = day.year, day.toordinal()
    if at >= _week_one(year + 1, wkst):
        year += 1
    elif at < _week_one(year, wkst):
        year -= 1
    first = _week_one(year, wkst)
    return year, (at - first) // 7 + 1, (_week_one(year + 1, wkst) - first) // 7


def _month_end(day: date) -> date:
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)


def _nth(day: date, rule: Rule) -> tuple[int, int]:
    """Which of its weekday the day is in its month or year, from the start and from the end."""
    if rule.freq is Freq.MONTHLY or (rule.freq is Freq.YEARLY and rule.bymonth):
        return (day.day - 1) // 7 + 1, -((_month_end(day).day - day.day) // 7 + 1)
    of_year = day.timetuple().tm_yday
    return (of_year - 1) // 7 + 1, -((date(day.year, 12, 31) - day).days // 7 + 1)


def on_day(rule: Rule, day: date) -> bool:
    """Whether the day parts of a filled rule allow the day."""
    if rule.bymonth and day.month not in rule.bymonth:
        return False
    of_year, left = day.timetuple().tm_yday, (date(day.year, 12, 31) - day).days
    if rule.byyearday and of_year not in rule.byyearday and -left - 1 not in rule.byyearday:
        return False
    if rule.bymonthday and day.day not in rule.bymonthday and day.day - _month_end(day).day - 1 not in rule.bymonthday:
        return False
    if rule.byweekno:
        _, week, weeks = _week_of(day, rule.wkst)
        if week not in rule.byweekno and week - weeks - 1 not in rule.byweekno:
            return False
    if rule.byday:
        nth = _nth(day, rule)
        if not any(weekday == day.weekday() and (not n or n in nth) for n, weekday in rule.byday):
            return False
    return True


def _period(rule: Rule, day: date) -> tuple[date, date, int]:
    """First and last day of the day's period, inside the calendar, and its number."""
    if rule.freq is Freq.YEARLY:
        if rule.byweekno:
            year = _week_of(day, rule.wkst)[0]
            first, after = _week_one(year, rule.wkst), _week_one(year + 1, rule.wkst)
            return date.fromordinal(max(first, 1)), date.fromordinal(min(after, date.max.toordinal() + 1) - 1), year
        return day.replace(month=1, day=1), day.replace(month=12, day=31), day.year
    if rule.freq is Freq.MONTHLY:
        return day.replace(day=1), _month_end(day), day.year * 12 + day.month
    if rule.freq is Freq.WEEKLY:
        first = day - timedelta(days=(day.weekday() - rule.wkst) % 7)
        return first, first + timedelta(days=6), (first - _EPOCH).days // 7
    return day, day, (day - _EPOCH).days


def _picked(rule: Rule, members: list[int]) -> list[int]:
    """Return the members of a period that BYSETPOS selects."""
    if not rule.bysetpos:
        return members
    size = len(members)
    return sorted({members[p - 1 if p > 0 else p] for p in rule.bysetpos if abs(p) <= size})


def members(entry: Entry, first: date, last: date) -> Iterator[int]:
    """Local seconds of one rule on the days of a range, COUNT aside."""
    rule = entry.rule.filled(entry.start)
    start_day = _EPOCH + timedelta(days=entry.start // civil.DAY_S)
    until = entry.until if entry.until is not None else civil.MAX_LOCAL
    found: Iterator[int]
    if rule.freq >= Freq.HOURLY:
        found = _sub_daily(rule, entry.start, first, last)
    else:
        found = _periods(rule, start_day, first, last)
    begin, end = (first - _EPOCH).days * civil.DAY_S, ((last - _EPOCH).days + 1) * civil.DAY_S
    for local in found:
        if max(entry.start, begin) <= local <= until and local < end:
            yield local


def _sub_daily(rule: Rule, start: int, first: date, last: date) -> Iterator[int]:
    """Yield the members of a rule that repeats within a day."""
    unit_s = UNIT_S[rule.freq]
    hours = frozenset(rule.byhour or range(24))
    minutes = frozenset(rule.byminute or range(60))
    seconds = frozenset(rule.bysecond or range(60))
    inside = range(0, unit_s, 60) if rule.freq is Freq.HOURLY else range(1)
    per_minute = sorted(seconds) if rule.freq < Freq.SECONDLY else [0]
    origin = start // unit_s
    day = first
    while day <= last:
        allowed = on_day(rule, day)
        begin = (day - _EPOCH).days * civil.DAY_S // unit_s
        units = range(begin + (origin - begin) % rule.interval, begin + civil.DAY_S // unit_s, rule.interval)
        for unit in units if allowed else ():
            second = unit * unit_s % civil.DAY_S
            if second // 3600 not in hours:
                continue
            if rule.freq > Freq.HOURLY and second // 60 % 60 not in minutes:
                continue
            if rule.freq is Freq.SECONDLY and second % 60 not in seconds:
                continue
            there = [
                unit * unit_s + minute + each
                for minute in inside
                if rule.freq > Freq.HOURLY or minute // 60 in minutes
                for each in per_minute
            ]
            yield from _picked(rule, there)
        day += timedelta(days=1)


def _periods(rule: Rule, start_day: date, first: date, last: date) -> Iterator[int]:
    """Yield the members of a rule that repeats daily or less often."""
    times = sorted(h * 3600 + m * 60 + s for h, m, s in product(rule.byhour, rule.byminute, rule.bysecond))
    number = _period(rule, start_day)[2]
    day = first
    while day <= last:
        begins, ends, here = _period(rule, day)
        if (here - number) % rule.interval == 0:
            days = [begins + timedelta(days=n) for n in range((ends - begins).days + 1)]
            there = [(each - _EPOCH).days * civil.DAY_S + time for each in days if on_day(rule, each) for time in times]
            yield from _picked(rule, there)
        day = ends + timedelta(days=1)


def of_set(rules: RuleSet, first: date, last: date) -> list[int]:
    """Local seconds of a set on the days of a range."""
    found = {local for entry in rules.rules for local in members(entry, first, last)}
    begin, end = (first - _EPOCH).days * civil.DAY_S, ((last - _EPOCH).days + 1) * civil.DAY_S
    found |= {local for local in rules.rdates if begin <= local < end}
    found -= {local for entry in rules.exrules for local in members(entry, first, last)}
    return sorted(local for local in found if local not in rules.exdates and local // civil.DAY_S not in rules.exdays)

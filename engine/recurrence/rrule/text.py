"""A recurrence set in one exact English sentence.

Every part of the rule, and DTSTART when there is one, has words of its own: rules with different slots never share a
sentence, except for long lists of dates, which are shortened to the first and the last. Parts derived from DTSTART are
spelled out ("on Tuesday at 09:00", not "as at the start").
"""

from collections.abc import Sequence

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.dial import Dial, of_values
from lodger.engine.recurrence.rrule.parser import Entry, RuleSet
from lodger.engine.recurrence.rrule.parts import UNIT_S, Freq, Rule
from lodger.engine.recurrence.words import (
    MONTHS,
    WEEKDAYS,
    clock,
    clock_times,
    counted,
    joined,
    listed,
    ordinal,
    sentence,
    series,
)

_UNIT = ("year", "month", "week", "day", "hour", "minute", "second")
_WEEK = tuple((0, day) for day in range(7))
#: Up to so many dates are listed; of more the first ones, how many follow, and the last.
_MAX_DATES, _FIRST_DATES = 8, 3


def _date(day: int) -> str:
    """Return a day in words."""
    year, month, dom = civil.civil(day)
    return f"{MONTHS[month]} {dom}, {year}"


def moment_text(local: int, *, midnight: bool = False) -> str:
    """A local second as "September 2, 1997 at 09:00"; midnight is left out unless asked for."""
    day, second = civil.split(local)
    return _date(day) if second == 0 and not midnight else f"{_date(day)} at {clock(second)}"


def _dates(words: list[str]) -> str:
    """Return a list of days in words, the first ones of many."""
    if len(words) <= _MAX_DATES:
        return joined(words)
    left = len(words) - _FIRST_DATES - 1
    return f"{', '.join(words[:_FIRST_DATES])}, {left} more, and {words[-1]}"


def _ordinals(numbers: Sequence[int]) -> list[str]:
    """Return numbers as ordinals."""
    return [counted(n) for n in sorted(numbers, key=lambda n: (n < 0, abs(n)))]


def _weekdays(rule: Rule) -> str:
    """Return the weekdays of a rule in words."""
    words = []
    if plain := of_values(weekday for number, weekday in rule.byday if not number):
        words.append(listed(plain, WEEKDAYS))
    for number, weekday in sorted(rule.byday, key=lambda pair: (pair[0] < 0, abs(pair[0]), pair[1])):
        if number:
            words.append(f"the {counted(number)} {WEEKDAYS[weekday]}")
    text = joined(words)
    if rule.freq is Freq.YEARLY and any(number for number, _ in rule.byday):
        text += " of the month" if rule.bymonth else " of the year"
    return text


def _month_days(rule: Rule, last: str = "and") -> str:
    """Return the days of the month of a rule in words; ``last`` joins the final two."""
    values = [number for number in rule.bymonthday if number > 0]
    step = series(values)
    words = (
        [f"every {ordinal(step)} day from the {ordinal(values[0])} through the {ordinal(values[-1])}"] if step else []
    )
    if not step:
        words += [f"the {ordinal(number)}" for number in values]
    words += [f"the {counted(number)} day" for number in sorted(rule.bymonthday, reverse=True) if number < 0]
    return joined(words, last)


def _days(rule: Rule) -> str:
    """Return the days of a rule in words."""
    text = ""
    if rule.byday and not _is_week(rule):
        text += f" on {_weekdays(rule)}"
    if rule.bymonthday:
        text += f"{' if it is' if text else ' on'} {_month_days(rule, 'or' if text else 'and')}"
        if rule.freq is Freq.YEARLY and not rule.bymonth:
            text += " of every month"
    if rule.byyearday:
        text += f"{' if it is' if text else ' on'} the {joined(_ordinals(rule.byyearday), 'or' if text else 'and')} day of the year"
    if rule.byweekno:
        text += f" in the {joined(_ordinals(rule.byweekno))} week of the year"
    if rule.bymonth:
        text += f" {'of' if rule.bymonthday and not rule.byyearday else 'in'} {listed(of_values(rule.bymonth), MONTHS)}"
    return text


def _is_week(rule: Rule) -> bool:
    """Whether a weekly rule names all seven days, which is said as every day."""
    return rule.freq is Freq.WEEKLY and rule.interval == 1 and not rule.bysetpos and rule.byday == _WEEK


def _whole_weeks(rule: Rule) -> bool:
    """Whether BYWEEKNO beside WEEKLY or MONTHLY names no day: then every day of those weeks is one."""
    whole = rule.freq in (Freq.WEEKLY, Freq.MONTHLY) and rule.interval == 1 and not rule.bysetpos
    return bool(whole and rule.byweekno and not (rule.byday or rule.bymonthday or rule.byyearday))


def _every_weekday(rule: Rule) -> bool:
    """Whether weekdays are the only thing that picks days of a unit, so that *every month on Monday* is *on every Monday*."""
    plain = rule.byday and not any(number for number, _ in rule.byday) and not _is_week(rule)
    whole = rule.freq in (Freq.YEARLY, Freq.MONTHLY, Freq.DAILY) and rule.interval == 1 and not rule.bysetpos
    return bool(plain and whole and not rule.byweekno)


def _last_weekday(rule: Rule) -> bool:
    """Whether a monthly rule names only the last Monday-to-Friday day, at one time of day."""
    only = rule.byday == tuple((0, day) for day in range(5)) and rule.bysetpos == (-1,)
    days = not (rule.bymonthday or rule.byyearday or rule.byweekno)
    single = len(rule.byhour) == len(rule.byminute) == len(rule.bysecond) == 1
    return rule.freq is Freq.MONTHLY and rule.interval == 1 and only and days and single


def _time_of_day(rule: Rule) -> str:
    """Return the times of day of a rule in words."""
    times = clock_times(Dial(of_values(rule.byhour), of_values(rule.byminute), of_values(rule.bysecond)))
    if times is not None:
        return f" {times}"
    words = _fields("hour", rule.byhour, "in") + _fields("minute", rule.byminute, "at")
    return words + (_fields("second", rule.bysecond, "at") if rule.bysecond != (0,) else "")


def _fields(name: str, values: tuple[int, ...], preposition: str) -> str:
    """Return the values of a part, such as ``hours``, in words after a preposition; empty without any."""
    if not values:
        return ""
    if step := series(values):
        return f" {preposition} every {ordinal(step)} {name} from {values[0]} through {values[-1]}"
    return f" {preposition} {name}{'s' if len(values) > 1 else ''} {listed(of_values(values))}"


def _times(filled: Rule) -> str:
    """Return the times of day of a rule in words."""
    if filled.freq < Freq.HOURLY:
        return _time_of_day(filled)
    words = _fields("hour", filled.byhour, "in")
    for name, values, coarser in (
        ("minute", filled.byminute, Freq.HOURLY),
        ("second", filled.bysecond, Freq.MINUTELY),
    ):
        if filled.freq > coarser:
            words += _fields(name, values, "in")
        elif values != (0,):
            words += _fields(name, values, "at")
    return words


def rule_text(rule: Rule, start: int, until: int | None = None, *, last: int | None = None) -> str:
    """Return the sentence of one rule, without its start; ``until`` is its UNTIL as a local second, or ``last`` as one in UTC."""
    filled = rule.filled(start)
    unit = _UNIT[rule.freq]
    if _last_weekday(filled):
        text = "on the last weekday of the month" + (
            f" in {listed(of_values(rule.bymonth), MONTHS)}" if rule.bymonth else ""
        )
    elif _every_weekday(filled):
        text = (
            _days(filled).strip()
            if rule.bymonthday or rule.byyearday
            else f"on every{_days(filled).removeprefix(' on')}"
        )
    else:
        if _is_week(filled) or _whole_weeks(filled):
            text = "every day"
        else:
            text = f"every {unit}" if rule.interval == 1 else f"every {rule.interval} {unit}s"
            if rule.freq is Freq.DAILY and rule.interval % 7 == 0 and not rule.byday:
                text += f" on {WEEKDAYS[civil.weekday(start // civil.DAY_S)]}"
        text += _days(filled)
    text += _times(filled)
    if rule.bysetpos and not _last_weekday(filled):
        words = _ordinals(rule.bysetpos)
        text += f", only the {joined(['first' if word == '1st' else word for word in words])} of these in each {unit}"
    if rule.wkst and (rule.freq is Freq.WEEKLY or rule.byweekno):
        text += f", weeks beginning on {WEEKDAYS[rule.wkst]}"
    if rule.count is not None:
        text += f", {rule.count} time{'s' if rule.count > 1 else ''}"
    if last is not None:
        text += f", until {_utc(last)}"
    elif until is not None:
        whole_day = rule.until is not None and rule.until.date
        text += (
            f", through {_date(until // civil.DAY_S)}" if whole_day else f", until {moment_text(until, midnight=True)}"
        )
    return text


def _is_counted(rule: Rule) -> bool:
    """Whether it depends on the start which days or times an INTERVAL names."""
    return bool(civil.DAY_S % (rule.interval * UNIT_S[rule.freq]) if rule.freq in UNIT_S else rule.interval > 1)


def _utc(second: int) -> str:
    """Return an instant, UTC seconds since 1970, in words."""
    return f"{moment_text(second, midnight=True)} UTC"


def _entry_text(entry: Entry, rules: RuleSet) -> str:
    """Return the sentence of one entry of a set, without its start."""
    text = rule_text(entry.rule, entry.start, entry.until, last=entry.last)
    if entry.start != rules.start:
        text += f", starting {moment_text(entry.start, midnight=True)}"
    return text


def set_text(rules: RuleSet, idle: Sequence[int] = ()) -> str:
    """Return the sentence of the whole set, without the zone.

    Args:
        idle: local times of EXDATE at which there is no slot to exclude.
    """
    text = "; and ".join(_entry_text(entry, rules) for entry in rules.rules)
    if rules.rdates or rules.also:
        moments = [moment_text(local, midnight=True) for local in sorted(rules.rdates)] + [
            _utc(instant) for instant in sorted(rules.also)
        ]
        dates = _dates(moments)
        text = f"{text}; and once on {dates}" if text else f"once on {dates}"
    for entry in rules.exrules:
        text += f"; but not {_entry_text(entry, rules)}"
    if rules.exdates or rules.without:
        without = [moment_text(local, midnight=True) for local in sorted(rules.exdates)]
        without += [_utc(instant) for instant in sorted(rules.without)]
        text += f"; but not on {_dates(without)}"
    if rules.exdays:
        text += f"; but not on the whole of {_dates([_date(day) for day in sorted(rules.exdays)])}"
    if rules.anchored and (rules.rules or rules.exrules):
        text += f"; starting {moment_text(rules.start, midnight=True)}"
    elif any(_is_counted(entry.rule) for entry in (*rules.rules, *rules.exrules)):
        text += f"; counted from {WEEKDAYS[civil.weekday(rules.start // civil.DAY_S)]}, {moment_text(rules.start)}"
    if idle:
        text += f"; excluding {_dates([moment_text(local, midnight=True) for local in idle])} changes nothing"
    if rules.unread:
        text += f"; without the event's {joined(list(rules.unread))}"
    return sentence(text)

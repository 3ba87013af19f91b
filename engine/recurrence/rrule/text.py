"""A recurrence set in one exact English sentence.

Every part of the rule, and DTSTART when there is one, leaves its own words: rules whose slots differ never share a
sentence. What is derived from DTSTART is said too, because a person reads "on Tuesday at 09:00", not "as at the start".
"""

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.rrule.parser import Entry, RuleSet
from lodger.engine.recurrence.rrule.parts import Freq, Rule

_UNIT = ("year", "month", "week", "day", "hour", "minute", "second")
_WEEKDAY = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH = (
    "",
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEK = tuple((0, day) for day in range(7))
#: Up to so many times of day are listed one by one.
_LISTED = 12


def joined(words: list[str]) -> str:
    """Join with commas and a last "and"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def ordinal(number: int) -> str:
    """1st, 22nd, 113th; negative numbers count from the end: last, 2nd last."""
    if number < 0:
        return "last" if number == -1 else f"{ordinal(-number)} last"
    tens = number % 100
    ending = "th" if 10 < tens < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _clock(hour: int, minute: int, second: int) -> str:
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")


def _date(day: int) -> str:
    year, month, dom = civil.civil(day)
    return f"{_MONTH[month]} {dom}, {year}"


def moment_text(local: int, *, midnight: bool = False) -> str:
    """A local second as "September 2, 1997 at 09:00"; midnight is left out unless asked for."""
    day, second = civil.split(local)
    if second == 0 and not midnight:
        return _date(day)
    return f"{_date(day)} at {_clock(*civil.clock(second))}"


def _ordinals(numbers: tuple[int, ...]) -> list[str]:
    return [ordinal(n) for n in sorted(numbers, key=lambda n: (n < 0, abs(n)))]


def _numbers(numbers: tuple[int, ...]) -> str:
    """1, 2, 3 and 7 → "1 to 3 and 7"."""
    words: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        if end - at < 2:
            words += [str(n) for n in numbers[at : end + 1]]
        else:
            words.append(f"{numbers[at]} to {numbers[end]}")
        at = end + 1
    return joined(words)


def _weekdays(rule: Rule) -> str:
    words = []
    for number, weekday in sorted(rule.byday, key=lambda pair: (pair[0] != 0, pair[0] < 0, abs(pair[0]), pair[1])):
        words.append(f"the {ordinal(number)} {_WEEKDAY[weekday]}" if number else _WEEKDAY[weekday])
    return ", ".join(words)


def _days(rule: Rule) -> str:
    text = ""
    if rule.byday and not _is_week(rule):
        text += f" on {_weekdays(rule)}"
        if rule.freq is Freq.YEARLY and rule.bymonth and any(number for number, _ in rule.byday):
            text += " of the month"
    if rule.bymonthday:
        text += f"{' if it is' if text else ' on'} the {joined(_ordinals(rule.bymonthday))}"
        if rule.freq is Freq.YEARLY and not rule.bymonth:
            text += " of every month"
    if rule.byyearday:
        text += f"{' if it is' if text else ' on'} the {joined(_ordinals(rule.byyearday))} day of the year"
    if rule.byweekno:
        text += f" in the {joined(_ordinals(rule.byweekno))} week of the year"
    if rule.bymonth:
        text += f" in {joined([_MONTH[month] for month in rule.bymonth])}"
    return text


def _is_week(rule: Rule) -> bool:
    """Whether BYDAY is said by the unit: every weekday, every day."""
    plain = rule.freq is Freq.WEEKLY and rule.interval == 1 and not rule.bysetpos
    return plain and rule.byday in (_WEEK, _WEEK[:5])


def _time_of_day(rule: Rule, asked_hours: bool) -> str:
    if asked_hours and rule.byminute == (0,) and rule.bysecond == (0,):
        return f" at {joined([str(hour) for hour in rule.byhour])}"
    if len(rule.byhour) * len(rule.byminute) * len(rule.bysecond) <= _LISTED:
        times = [_clock(h, m, s) for h in rule.byhour for m in rule.byminute for s in rule.bysecond]
        return f" at {joined(times)}"
    words = _fields("hour", rule.byhour, "in") + _fields("minute", rule.byminute, "at")
    return words + (_fields("second", rule.bysecond, "at") if rule.bysecond != (0,) else "")


def _fields(name: str, values: tuple[int, ...], preposition: str) -> str:
    return f" {preposition} {name}{'s' if len(values) > 1 else ''} {_numbers(values)}" if values else ""


def _times(rule: Rule, filled: Rule, *, anchored: bool) -> str:
    if rule.freq < Freq.HOURLY:
        if not anchored and not (rule.byhour or rule.byminute or rule.bysecond):
            return ""
        return _time_of_day(filled, asked_hours=bool(rule.byhour))
    words = _fields("hour", filled.byhour, "in")
    if rule.freq is not Freq.HOURLY:
        words += _fields("minute", filled.byminute, "in")
    elif filled.byminute != (0,):
        words += _fields("minute", filled.byminute, "at")
    if rule.freq is Freq.SECONDLY:
        words += _fields("second", filled.bysecond, "in")
    elif filled.bysecond != (0,):
        words += _fields("second", filled.bysecond, "at")
    return words


def rule_text(
    rule: Rule, start: int, until: int | None = None, *, anchored: bool = True, last: int | None = None
) -> str:
    """One rule, without its start; ``until`` is its UNTIL as a local second, or ``last`` as one in UTC."""
    filled = rule.filled(start)
    shown = filled if anchored else rule
    unit = _UNIT[rule.freq]
    if _is_week(shown):
        text = "every day" if len(shown.byday) == 7 else "every weekday"
    else:
        text = f"every {unit}" if rule.interval == 1 else f"every {rule.interval} {unit}s"
    text += _days(shown) + _times(rule, filled, anchored=anchored)
    if rule.bysetpos:
        text += f", only the {joined(_ordinals(rule.bysetpos))} of each {unit}"
    if rule.wkst and (rule.freq is Freq.WEEKLY or rule.byweekno):
        text += f", weeks beginning on {_WEEKDAY[rule.wkst]}"
    if rule.dateutil:
        text += ", as python-dateutil reads it"
    if rule.count is not None:
        text += f" for {rule.count} time{'s' if rule.count > 1 else ''}"
    if last is not None:
        text += f" until {_utc(last)}"
    elif until is not None:
        whole_day = rule.until is not None and rule.until.date
        text += f" through {_date(until // civil.DAY_S)}" if whole_day else f" until {moment_text(until)}"
    return text


def _utc(second: int) -> str:
    return f"{moment_text(second, midnight=True)} UTC"


def _entry_text(entry: Entry, rules: RuleSet) -> str:
    text = rule_text(entry.rule, entry.start, entry.until, anchored=rules.anchored, last=entry.last)
    if entry.start != rules.start:
        text += f", starting {moment_text(entry.start)}"
    return text


def set_text(rules: RuleSet) -> str:
    """Say the whole set, without the zone."""
    text = "; and ".join(_entry_text(entry, rules) for entry in rules.rules)
    if rules.rdates or rules.also:
        dates = joined([moment_text(local) for local in rules.rdates] + [_utc(instant) for instant in rules.also])
        text = f"{text}; and once on {dates}" if text else f"once on {dates}"
    for entry in rules.exrules:
        text += f"; but not {_entry_text(entry, rules)}"
    if rules.exdates or rules.without:
        without = [moment_text(local, midnight=True) for local in sorted(rules.exdates)]
        without += [_utc(instant) for instant in sorted(rules.without)]
        text += f"; but not on {joined(without)}"
    if rules.exdays:
        text += f"; but not on the whole of {joined([_date(day) for day in sorted(rules.exdays)])}"
    if rules.anchored and (rules.rules or rules.exrules):
        text += f", starting {moment_text(rules.start)}"
    return text[0].upper() + text[1:]

"""The sentence of a clause, which reads back as the same clause."""

from dataclasses import replace

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.dial import members
from lodger.engine.recurrence.english.phrase import HOUR_S, WORKDAYS, Clause, Date, Days, Series
from lodger.engine.recurrence.words import MONTHS, WEEKDAYS, clock, counted, every, joined, listed, ordinal

_ORDINALS = tuple(f"the {ordinal(number)}" for number in range(32))


def date_in_words(date: Date) -> str:
    """Return a date in words, such as ``December 25, 2027``."""
    return f"{MONTHS[date.month]} {date.day}" + (f", {date.year:04d}" if date.year else "")


def clause_in_words(clause: Clause) -> str:
    """Words of a clause with full bounds, without capital letter."""
    days, times = _days(clause), _times(clause.times)
    if _is_hourly(clause.times) or any(each.step for each in clause.times):
        words = times if days == "every day" else f"{times} {_on(days)}"
    else:
        words = f"{days} {times}"
    if clause.begins is not None and (clause.bounded or clause.selection()):
        day, second = divmod(clause.begins, civil.DAY_S)
        said = f"{WEEKDAYS[civil.weekday(day)]}, {date_in_words(Date(*civil.civil(day)))}"
        words += f", {'starting' if clause.bounded else 'counted from'} {said}" + (
            f" at {clock(second)}" if second else ""
        )
    if clause.last is not None:
        words += f", through {date_in_words(clause.last)}"
    if clause.but:
        words += f", except {joined([_excepted(each, clause) for each in clause.but])}"
    return words


def _excepted(days: Days, clause: Clause) -> str:
    """Return the words for days that are left out; beside weekdays *the 1st* might be the first of those."""
    numbers = days.month_days
    if (
        numbers
        and min(numbers) > 0
        and not (days.weekdays or days.months)
        and any(each.weekdays for each in clause.days)
    ):
        return f"on day{'s' * (len(numbers) > 1)} {listed(sum(1 << each for each in set(numbers)))} of the month"
    return _item(days, bare=True)


def _days(clause: Clause) -> str:
    """Return the days of a clause in words."""
    count, unit = clause.step
    step = "every " + (f"{count} {unit}s" if count > 1 else unit) if count else ""
    mixed = len({bool(each.weekdays or each.date) for each in clause.days}) > 1 and not clause.months
    items = [
        _item(each)
        + " of the month" * (mixed and bool(each.month_days or each.nth) and not (each.months or each.weekdays))
        for each in clause.days
    ]
    words = joined(items) if items else ""
    if step and words:
        # "every 2 weeks on Friday": the days come after the step.
        words = f"{step} {' and '.join(_after_step(each) for each in clause.days)}"
    elif step or not words:
        words = step or "every day"
    counted_days = all(each.month_days or each.nth for each in clause.days) and not _is_friday_13(clause.days)
    if clause.months:
        words += f" {'of' if counted_days and clause.days else 'in'} {listed(clause.months, MONTHS)}"
    elif not (count or mixed) and clause.days and counted_days and not any(each.months for each in clause.days):
        words += " of the month"
    return words


def _on(days: str) -> str:
    """Return the words for days that follow times said with *every*."""
    return f"on {days.removeprefix('every ')}" if days.startswith(tuple(f"every {name}" for name in WEEKDAYS)) else days


def _is_friday_13(days: tuple[Days, ...]) -> bool:
    """Whether the days are weekdays that fall on a day of the month, such as each Friday the 13th."""
    return all(each.weekdays and each.month_days for each in days)


def _after_step(days: Days) -> str:
    """Return the words for days that follow ``every 2 weeks`` and the like."""
    return (
        f"on {listed(days.weekdays, WEEKDAYS)}"
        if days.weekdays and not days.month_days
        else _item(days, bare=days.date is not None)
    )


def _item(days: Days, *, bare: bool = False) -> str:
    """Return words for one alternative: ``every Monday``, ``on the 1st and the 15th``; bare after *except*."""
    if days.months and (days.month_days or days.nth):
        return f"{_item(replace(days, months=0))} of {listed(days.months, MONTHS)}"
    if days.date is not None:
        return ("on " if days.date.year or bare else "every ") + date_in_words(days.date)
    if days.months and bare:
        return f"in {listed(days.months, MONTHS)}"
    if days.month_days and days.weekdays:
        return f"on {listed(days.weekdays, WEEKDAYS)} the {joined([counted(each) for each in days.month_days])}"
    if days.weekdays:
        return ("on " if bare else "every ") + listed(days.weekdays, WEEKDAYS)
    if days.month_days:
        if all(each > 0 for each in days.month_days):
            return f"on {listed(sum(1 << each for each in set(days.month_days)), _ORDINALS)}"
        return "on " + joined([f"the {counted(each)}{' day' * (each < 0)}" for each in days.month_days])
    bits = days.nth[0][1]
    name = "weekday" if bits == WORKDAYS else WEEKDAYS[members(bits)[0]]
    return f"on the {joined([counted(n) for n, _ in days.nth])} {name}"


def _is_hourly(times: tuple[Series, ...]) -> bool:
    """Whether the times come every hour around the clock."""
    return bool(times) and all(each.step == HOUR_S and each.whole_day() for each in times)


def _times(times: tuple[Series, ...]) -> str:
    """Return times of day in words."""
    if _is_hourly(times):
        minutes = [str(each.first // 60) for each in times]
        if minutes == ["0"]:
            return "every hour"
        return f"at minute{'s' if len(minutes) > 1 else ''} {joined(minutes)} of every hour"
    if all(not each.step for each in times):
        return f"at {joined([clock(each.first) for each in times])}"
    return joined([_series(each) for each in times])


def _series(each: Series) -> str:
    """Return a series of times in words."""
    often = every(each.step)
    return (
        often if each.whole_day() and not each.first else f"{often} from {clock(each.first)} through {clock(each.last)}"
    )

"""A cron expression as a rule with its words."""

from lodger.engine.recurrence.calendar.dial import Dial, members
from lodger.engine.recurrence.calendar.grid import Grid
from lodger.engine.recurrence.calendar.yeardays import YearDays
from lodger.engine.recurrence.cron.days import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, CronDays, MonthDays, WeekDays
from lodger.engine.recurrence.groups import Group, GroupedRule
from lodger.engine.recurrence.words import MONTHS, WEEKDAYS, joined, listed, ordinal, series, spoken, timed


def _month_days(days: MonthDays) -> str:
    """Return the days of the month in words, without capital letter."""
    words = []
    if days.numbers:
        values = members(days.numbers)
        if step := series(values):
            words.append(f"every {ordinal(step)} day of the month from {values[0]} through {values[-1]}")
        else:
            words.append(f"day{'s' if len(values) > 1 else ''} {listed(days.numbers)} of the month")
    for item in days.from_end:
        day = (
            "the last day of the month" if not item.before else f"the {ordinal(item.before + 1)} last day of the month"
        )
        if item.nearest_weekday:
            # The weekday nearest to the last day is the last one: later there is none in the month.
            day = f"the weekday nearest to {day}" if item.before else "the last weekday of the month"
        words.append(day)
    words += [f"the weekday nearest to day {day}" for day in days.nearest]
    return joined(words, "or")


def _week_days(days: WeekDays) -> str:
    """Return the days of the week in words, without capital letter."""
    words = []
    if days.weekly:
        words.append(listed(days.weekly, WEEKDAYS))
    for weekday, which in days.nth:
        words.append(f"the {ordinal(which) if which > 0 else 'last'} {WEEKDAYS[weekday]} of the month")
    return joined(words, "or")


def days_in_words(days: CronDays) -> str:
    """Words for the days, without capital letter."""
    every_date, every_weekday = days.month_days.numbers == ALL_DAYS, days.week_days.weekly == ALL_WEEKDAYS
    by_date, by_week = _month_days(days.month_days), _week_days(days.week_days)
    if days.both():
        if every_date and every_weekday:
            said = "every day"
        elif every_date:
            said = f"on {by_week}"
        elif every_weekday:
            said = f"on {by_date}"
        else:
            said = f"on {by_date}, but only when it is also {by_week}"
    elif every_date or every_weekday:
        said = "every day"
    else:
        said = f"on {by_date}, and also on {by_week}"
    if days.months != ALL_MONTHS:
        said += f", in {listed(days.months, MONTHS)}"
    return said


def rule_of(dial: Dial, days: CronDays, *, recurring: bool) -> GroupedRule:
    """Return the rule of these times of day on these days; nothing is computed before the first question.

    Args:
        recurring: the minute or hour field begins with a star, so the job follows the running clock (Debian's cron).
    """

    def words() -> str:
        """Return the sentence of the rule."""
        return timed(spoken(dial, recurring=recurring), days_in_words(days))

    return GroupedRule([Group(Grid(YearDays(days.of_year), dial), words, recurring)])

"""A cron expression that answers questions."""

from dataclasses import dataclass

from lodger.engine.recurrence.calendar.dial import Dial, members
from lodger.engine.recurrence.calendar.grid import Grid
from lodger.engine.recurrence.calendar.min_spacing import of_dial
from lodger.engine.recurrence.calendar.yeardays import YearDays
from lodger.engine.recurrence.cron.days import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, CronDays, MonthDays, WeekDays
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, LocalPace, LocalSeconds
from lodger.engine.recurrence.search import Steps
from lodger.engine.recurrence.words import MONTHS, WEEKDAYS, joined, listed, ordinal, sentence, series, spoken, timed


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
    words += [f"the {ordinal(which)} {WEEKDAYS[weekday]} of the month" for weekday, which in days.nth]
    words += [f"the last {WEEKDAYS[weekday]} of the month" for weekday in days.last]
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


@dataclass(frozen=True, slots=True)
class CronRule:
    """Slots of a cron expression on the wall clock (a LocalSequence).

    Attributes:
        dial: times of day.
        days: the day-level fields.
        recurring: the minute or hour field begins with a star, so the job follows the running clock
            (Debian's cron).
    """

    dial: Dial
    days: CronDays
    recurring: bool
    grid: Grid

    @classmethod
    def of(cls, dial: Dial, days: CronDays, *, recurring: bool) -> "CronRule":
        """Make the rule; nothing is computed before the first question."""
        return cls(dial, days, recurring, Grid(YearDays(days.of_year), dial))

    def next_from(self, local: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """First member at or after the local second; None up to the end of year 9999."""
        return self.grid.next_from(local, steps)

    def last_to(self, local: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """Last member at or before the local second."""
        return self.grid.last_to(local, steps)

    def text(self) -> str:
        """Return the rule as one exact English sentence, without the zone."""
        return sentence(timed(spoken(self.dial, recurring=self.recurring), days_in_words(self.days)))

    def ends(self) -> bool:
        """Whether the number of slots is finite: only when the rule has none at all, because cron names no years."""
        return self.grid.days.is_empty()

    def default_dst(self) -> DstPolicy:
        """Return the default DST policy, Debian's: a fixed time runs once, right after the gap that skips it; a star runs by the
        clock."""
        if self.recurring:
            return DstPolicy(Gap.SKIP, Fold.BOTH)
        return DstPolicy(Gap.NEXT, Fold.FIRST)

    def never_reason(self) -> str | None:
        """Return why there is no slot, None if there is one."""
        if not self.grid.days.is_empty():
            return None
        return f"No year of the calendar has such a day: {days_in_words(self.days)}."

    def pace(self) -> LocalPace:
        """Bounds of the distance between members."""
        return of_dial(self.dial)

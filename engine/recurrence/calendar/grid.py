"""Days × times of day: the members of a cron expression, of a Schyntax group and of most RRULEs."""

from dataclasses import dataclass

from lodger.engine.recurrence.calendar.civil import DAY_S, MAX_LOCAL, MIN_LOCAL, civil, year_start
from lodger.engine.recurrence.calendar.dial import Times
from lodger.engine.recurrence.calendar.yeardays import YearDays
from lodger.engine.recurrence.rule import LocalSeconds
from lodger.engine.recurrence.search import Steps


@dataclass(frozen=True, slots=True)
class Grid:
    """Every time of a set that is not empty on every day of a set.

    Attributes:
        begins, ends: local seconds before and after which there is no member.
    """

    days: YearDays
    times: Times
    begins: LocalSeconds = MIN_LOCAL
    ends: LocalSeconds = MAX_LOCAL

    def next_from(self, local: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """First member at or after the local second; None up to the end of year 9999."""
        if local > self.ends:
            return None
        wanted, second = divmod(max(local, self.begins), DAY_S)
        time = self.times.at_or_after(second)
        day = self.days.at_or_after(wanted if time is not None else wanted + 1, steps)
        if day is None:
            return None
        found = day * DAY_S + (time if day == wanted and time is not None else self.times.first())
        return found if found <= self.ends else None

    def nth_from(self, local: LocalSeconds, index: int, steps: Steps) -> LocalSeconds | None:
        """Member with a 0-based number, counted from a local second on; None when there are fewer."""
        first, size = self.next_from(local, steps), self.times.count()
        if first is None:
            return None
        day, second = divmod(first, DAY_S)
        days_on, nth = divmod(index + self.times.rank(second), size)
        year = civil(day)[0]
        left = self.days.of_year(year) >> day - year_start(year) << day - year_start(year)
        while left.bit_count() <= days_on:
            days_on -= left.bit_count()
            year += 1
            if year_start(year) * DAY_S > MAX_LOCAL:
                return None
            steps.take(year_start(year) * DAY_S)
            left = self.days.of_year(year)
        for _ in range(days_on):
            left &= left - 1
        return (year_start(year) + (left & -left).bit_length() - 1) * DAY_S + self.times.nth(nth)

"""Days × times of day: the members of a cron expression, of a Schyntax group and of most RRULEs."""

from dataclasses import dataclass
from typing import Protocol

from lodger.engine.recurrence.calendar.civil import DAY_S, MAX_LOCAL, MIN_LOCAL, civil, year_start
from lodger.engine.recurrence.calendar.yeardays import YearDays
from lodger.engine.recurrence.rule import LocalSeconds
from lodger.engine.recurrence.search import Steps


class Times(Protocol):
    """Ascending seconds of a unit of time."""

    def first(self) -> int:
        """Return the earliest time of day."""

    def last(self) -> int:
        """Return the latest time of day."""

    def at_or_after(self, second: int) -> int | None:
        """Return the first time of day at or after a second of the day; None when there is none."""

    def at_or_before(self, second: int) -> int | None:
        """Return the last time of day at or before a second of the day; None when there is none."""

    def count(self) -> int:
        """Return the number of times of day."""

    def rank(self, second: int) -> int:
        """Return the number of times of day before a second of the day."""

    def nth(self, index: int) -> int:
        """Return the time of day with this 0-based number, in seconds."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Every time of a set that is not empty on every day of a set."""

    days: YearDays
    times: Times

    def next_from(self, local: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """First member at or after the local second; None up to the end of year 9999."""
        if local > MAX_LOCAL:
            return None
        wanted, second = divmod(max(local, MIN_LOCAL), DAY_S)
        time = self.times.at_or_after(second)
        day = self.days.at_or_after(wanted if time is not None else wanted + 1, steps)
        if day is None:
            return None
        return day * DAY_S + (time if day == wanted and time is not None else self.times.first())

    def last_to(self, local: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """Last member at or before the local second; None back to year 1."""
        if local < MIN_LOCAL:
            return None
        wanted, second = divmod(min(local, MAX_LOCAL), DAY_S)
        time = self.times.at_or_before(second)
        day = self.days.at_or_before(wanted if time is not None else wanted - 1, steps)
        if day is None:
            return None
        return day * DAY_S + (time if day == wanted and time is not None else self.times.last())

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

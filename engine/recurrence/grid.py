"""Days × times of day: the local slots of one cron expression or of one Schyntax group."""

from dataclasses import dataclass

from lodger.engine.recurrence import timeset
from lodger.engine.recurrence.civil import DAY_S, MAX_DAY, MAX_LOCAL, MIN_DAY, MIN_LOCAL
from lodger.engine.recurrence.dial import Dial
from lodger.engine.recurrence.rule import LocalSeconds
from lodger.engine.recurrence.yeardays import LONGEST_WAIT_YEARS, YearDays


@dataclass(frozen=True, slots=True)
class Grid:
    """Every time of the dial on every day of the set; a question costs at most two looks at each."""

    days: YearDays
    dial: Dial

    def next_local(self, local: LocalSeconds, *, inclusive: bool = False) -> LocalSeconds | None:
        """First member after (or at) the local second; None up to the end of year 9999."""
        if not inclusive:
            local += 1
        if local > MAX_LOCAL or self.dial.is_empty():
            return None
        wanted, second = divmod(max(local, MIN_LOCAL), DAY_S)
        day = self.days.at_or_after(wanted)
        if day is None:
            return None
        if day > wanted:
            return day * DAY_S + self.dial.first()
        time = self.dial.at_or_after(second)
        if time is not None:
            return day * DAY_S + time
        day = self.days.at_or_after(day + 1)
        return None if day is None else day * DAY_S + self.dial.first()

    def previous_local(self, local: LocalSeconds, *, inclusive: bool = False) -> LocalSeconds | None:
        """Last member before (or at) the local second; None back to year 1."""
        if not inclusive:
            local -= 1
        if local < MIN_LOCAL or self.dial.is_empty():
            return None
        wanted, second = divmod(min(local, MAX_LOCAL), DAY_S)
        day = self.days.at_or_before(wanted)
        if day is None:
            return None
        if day < wanted:
            return day * DAY_S + self.dial.last()
        time = self.dial.at_or_before(second)
        if time is not None:
            return day * DAY_S + time
        day = self.days.at_or_before(day - 1)
        return None if day is None else day * DAY_S + self.dial.last()

    def next(self, local: LocalSeconds) -> LocalSeconds | None:
        """First member from this local second on."""
        return self.next_local(local, inclusive=True)

    def previous(self, local: LocalSeconds) -> LocalSeconds | None:
        """Last member up to this local second."""
        return self.previous_local(local, inclusive=True)

    def times(self) -> int:
        """Bits of the seconds of a day."""
        return timeset.product(self.dial.hours, self.dial.minutes, self.dial.seconds)

    def has_days(self) -> bool:
        """Whether any day before year 10000 belongs to it."""
        return self.days.at_or_after(MIN_DAY) is not None

    def runs_for_ever(self) -> bool:
        """Whether it still has members in the last 40 years of the calendar."""
        return not self.dial.is_empty() and self.days.at_or_after(MAX_DAY - 366 * (LONGEST_WAIT_YEARS + 1)) is not None

"""A cron expression that answers questions."""

from dataclasses import dataclass

from lodger.engine.recurrence.calendar.dial import Dial
from lodger.engine.recurrence.calendar.grid import Grid
from lodger.engine.recurrence.calendar.min_spacing import of_dial
from lodger.engine.recurrence.calendar.yeardays import YearDays
from lodger.engine.recurrence.cron.days import CronDays
from lodger.engine.recurrence.cron.words import days_in_words
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, LocalPace, LocalSeconds
from lodger.engine.recurrence.search import Steps
from lodger.engine.recurrence.words import sentence, spoken, timed


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
        """One exact English sentence, without the zone."""
        return sentence(timed(spoken(self.dial, recurring=self.recurring), days_in_words(self.days)))

    def ends(self) -> bool:
        """Only when it has no slot at all: cron names no years."""
        return self.grid.days.is_empty()

    def default_dst(self) -> DstPolicy:
        """Debian's: a fixed time runs once, right after the gap that skips it; a star runs by the clock."""
        if self.recurring:
            return DstPolicy(Gap.SKIP, Fold.BOTH)
        return DstPolicy(Gap.NEXT, Fold.FIRST)

    def never_reason(self) -> str | None:
        """Why there is no slot, or None."""
        if not self.grid.days.is_empty():
            return None
        return f"No year of the calendar has such a day: {days_in_words(self.days)}."

    def pace(self) -> LocalPace:
        """Bounds of the distance between members."""
        return of_dial(self.dial)

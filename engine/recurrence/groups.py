"""Rules that are a union of days with times of day: what a cron expression, a Schyntax schedule and an English phrase compile to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lodger.engine.recurrence.calendar.civil import MAX_LOCAL
from lodger.engine.recurrence.calendar.grid import Grid
from lodger.engine.recurrence.calendar.min_spacing import of_day, united
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, LocalSeconds, Pace
from lodger.engine.recurrence.search import Steps, union_of
from lodger.engine.recurrence.words import sentence


@dataclass(frozen=True, slots=True)
class Group:
    """Days with the times of each.

    Attributes:
        words: returns the sentence, without capital letter.
        recurring: whether the slots follow the running clock; otherwise each time comes once a day.
    """

    grid: Grid
    words: Callable[[], str]
    recurring: bool


class GroupedRule:
    """Slots of groups on the wall clock (a LocalSequence): their union."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self.groups = tuple(groups)
        self._grids = [each.grid for each in self.groups if each.grid.times.count()]

    def next_from(self, local: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """First member at or after the local second; None up to the end of year 9999."""
        return union_of(self._grids, local).next_from(local, steps)

    def text(self) -> str:
        """Return the rule as one exact English sentence, without the zone."""
        return sentence(self._words())

    def _words(self) -> str:
        """Return the sentence without capital letter."""
        return "; and ".join(each.words() for each in self.groups)

    def ends(self) -> bool:
        """Whether the number of members is finite: each group has a last day, or only days of named years."""
        return all(each.ends < MAX_LOCAL or not each.days.repeats() for each in self._grids)

    def default_dst(self) -> DstPolicy:
        """Return the default DST policy, Debian's: slots that follow the running clock do so through a change, other times come once a
        day, right after the gap that skips them; none when groups differ."""
        if all(each.recurring for each in self.groups):
            return DstPolicy(Gap.SKIP, Fold.BOTH)
        if any(each.recurring for each in self.groups):
            return DstPolicy()
        return DstPolicy(Gap.NEXT, Fold.FIRST)

    def never_reason(self) -> str | None:
        """Return why there is no slot, None if there is one."""
        if not self._grids:
            return "The exclusions leave no time of day."
        if any(not each.days.is_empty() for each in self._grids):
            return None
        return f"No year of the calendar has such a day: {self._words()}."

    def pace(self) -> Pace:
        """Bounds of the distance between members."""
        return united(of_day(each.times) for each in self._grids)

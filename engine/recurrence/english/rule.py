"""A rule in English that answers questions."""

from dataclasses import dataclass, replace

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.dial import TimeList
from lodger.engine.recurrence.calendar.grid import Grid
from lodger.engine.recurrence.calendar.min_spacing import of_times, together
from lodger.engine.recurrence.calendar.yeardays import YearDays
from lodger.engine.recurrence.english.phrase import Clause
from lodger.engine.recurrence.english.words import clause_in_words
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, LocalPace, LocalSeconds
from lodger.engine.recurrence.search import Merge, Steps
from lodger.engine.recurrence.words import sentence


class ClauseSlots:
    """Slots of one clause on the wall clock, within its bounds."""

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.times = sorted({time for each in clause.times for time in each.times()})
        named = {year: clause.of_year(year) for year in clause.years()}
        days = YearDays(lambda year: clause.of_year(year, exact=False), named, clause.selection())
        self.grid = Grid(days, TimeList(tuple(self.times)))
        self._first = clause.begins if clause.bounded and clause.begins is not None else civil.MIN_LOCAL
        if clause.last is None and clause.days and all(each.date and each.date.year for each in clause.days):
            clause = replace(clause, last=max(each.date for each in clause.days if each.date))
        self._last = civil.MAX_LOCAL if clause.last is None else clause.until()

    def next_from(self, at: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """First member at or after the local second."""
        found = None if at > self._last else self.grid.next_from(max(at, self._first), steps)
        return None if found is None or found > self._last else found

    def last_to(self, at: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """Last member at or before the local second."""
        found = None if at < self._first else self.grid.last_to(min(at, self._last), steps)
        return None if found is None or found < self._first else found

    def ends(self) -> bool:
        """Whether the number of members is finite."""
        return self._last < civil.MAX_LOCAL or self.grid.days.is_empty()

    def recurring(self) -> bool:
        """Whether slots follow the running clock."""
        return all(each.whole_day() for each in self.clause.times)


@dataclass(frozen=True, slots=True)
class EnglishRule:
    """Slots of clauses on the wall clock (a LocalSequence): their union."""

    clauses: tuple[ClauseSlots, ...]

    def next_from(self, local: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """First member at or after the local second."""
        if len(self.clauses) == 1:
            return self.clauses[0].next_from(local, steps)
        return Merge(self.clauses, local).nearest(local, steps)

    def last_to(self, local: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """Last member at or before the local second."""
        if len(self.clauses) == 1:
            return self.clauses[0].last_to(local, steps)
        return Merge(self.clauses, local, forward=False).nearest(local, steps)

    def text(self) -> str:
        """Return the rule as one exact English sentence, without the zone."""
        return sentence("; and ".join(clause_in_words(each.clause) for each in self.clauses))

    def ends(self) -> bool:
        """Whether the members are finite."""
        return all(each.ends() for each in self.clauses)

    def default_dst(self) -> DstPolicy:
        """Return the default DST policy: what goes round the clock follows it, a time of day comes once a day; none when clauses
        differ."""
        if all(each.recurring() for each in self.clauses):
            return DstPolicy(Gap.SKIP, Fold.BOTH)
        if any(each.recurring() for each in self.clauses):
            return DstPolicy()
        return DstPolicy(Gap.NEXT, Fold.FIRST)

    def by_granularity(self) -> tuple["EnglishRule", ...]:
        """Split into the clauses that follow the running clock and the others: their DST defaults differ."""
        parts = (
            tuple(each for each in self.clauses if each.recurring()),
            tuple(each for each in self.clauses if not each.recurring()),
        )
        return tuple(EnglishRule(part) for part in parts if part)

    def never_reason(self) -> str | None:
        """Return why there is no slot, None if there is one."""
        if not all(each.grid.days.is_empty() for each in self.clauses):
            return None
        return f"No year of the calendar has such a day: {self.text()}."

    def pace(self) -> LocalPace:
        """Bounds of the distance between members."""
        return together(of_times(each.times) for each in self.clauses)

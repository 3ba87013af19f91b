"""BYSETPOS over a week, month or year: the n-th of all the times that a period names, DTSTART or not."""

from bisect import bisect_left
from collections.abc import Callable

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.dial import Dial, members
from lodger.engine.recurrence.calendar.yeardays import Selection, YearDays
from lodger.engine.recurrence.rrule.parts import Freq
from lodger.engine.recurrence.rrule.year_masks import span, week_one, week_year
from lodger.engine.recurrence.search import Steps

#: First day and day after the last of the period that holds a day.
Bounds = Callable[[int], tuple[int, int]]


def positions(bysetpos: tuple[int, ...], size: int) -> list[int]:
    """0-based indices that BYSETPOS picks from a set of that size, ascending and distinct."""
    return sorted({p - 1 if p > 0 else size + p for p in bysetpos if abs(p) <= size})


def period_bounds(freq: Freq, wkst: int, week_years: bool) -> Bounds:
    """Return the function that finds a day's period; ``week_years`` for YEARLY with BYWEEKNO."""

    def of_week(day: int) -> tuple[int, int]:
        """Return the first day of a day's week, and the first one after it."""
        first = day - (civil.weekday(day) - wkst) % 7
        return first, first + 7

    def of_month(day: int) -> tuple[int, int]:
        """Return the first day of a day's month, and the first one after it."""
        year, month, dom = civil.civil(day)
        return day - dom + 1, day - dom + 1 + civil.days_in_month(year, month)

    def of_year(day: int) -> tuple[int, int]:
        """Return the first day of a day's year, and the first one after it."""
        year = civil.civil(day)[0]
        return civil.year_start(year), civil.year_start(year + 1)

    def of_week_year(day: int) -> tuple[int, int]:
        """Return the first day of a day's week-numbering year, and the first one after it."""
        year = week_year(day, wkst)
        return week_one(year, wkst), week_one(year + 1, wkst)

    if freq is Freq.WEEKLY:
        return of_week
    if freq is Freq.MONTHLY:
        return of_month
    return of_week_year if week_years else of_year


def _year_of(day: int) -> int:
    """Year of a day that may lie some days outside the calendar: weeks cross its edges."""
    return civil.civil(day)[0] if civil.MIN_DAY <= day <= civil.MAX_DAY else 0 if day < 0 else civil.MAX_YEAR + 1


class PeriodPicks:
    """Members are local seconds: those of the allowed days × times of each period that BYSETPOS picks.

    Args:
        days_of: allowed days of a year.
        selection: days of the periods that INTERVAL selects; None for all.
    """

    def __init__(
        self,
        days_of: Callable[[int], int],
        selection: Selection | None,
        times: Dial,
        bysetpos: tuple[int, ...],
        bounds: Bounds,
    ) -> None:
        self._all = YearDays(days_of)
        self._times, self._bysetpos, self._bounds = times, bysetpos, bounds
        #: Days that a period must have for some position to exist.
        self._min_days = -(-min(abs(p) for p in bysetpos) // times.count())
        self.days = YearDays(days_of if self._min_days == 1 else self._sufficient, selection=selection)
        self._picks: dict[int, list[int]] = {}

    @property
    def nothing_allowed(self) -> bool:
        """Whether the rule allows no day of any year, before INTERVAL selects periods."""
        return self._all.is_empty()

    def _sufficient(self, year: int) -> int:
        """Return the allowed days of a year that lie in periods with enough of them for BYSETPOS to pick."""
        start, end = civil.year_start(year), civil.year_start(year + 1)
        kept, day = 0, start
        while day < end:
            first, after = self._bounds(day)
            if len(self._between(first, after)) >= self._min_days:
                kept |= self._all.usual(year) & span(first - start, after - start)
            day = after
        return kept

    def _between(self, first: int, end: int) -> list[int]:
        """Allowed days in [first, end), which spans at most three years, as if the calendar had no edges."""
        found: list[int] = []
        for year in range(_year_of(first), _year_of(end - 1) + 1):
            start = civil.year_start(year)
            found += [start + day for day in members(self._all.usual(year) & span(first - start, end - start))]
        return found

    def _period(self, day: int) -> tuple[int, list[int], list[int]]:
        """First day after the period that holds a day, its allowed days, and the indices picked of its times."""
        first, after = self._bounds(day)
        days = self._between(first, after)
        picked = self._picks.get(len(days))
        if picked is None:
            picked = self._picks[len(days)] = positions(self._bysetpos, len(days) * self._times.count())
        return after, days, picked

    def _member(self, days: list[int], index: int) -> int:
        """Return the local second with a 0-based number among all times of a period's days."""
        at, nth = divmod(index, self._times.count())
        return days[at] * civil.DAY_S + self._times.nth(nth)

    def _rank(self, days: list[int], picked: list[int], local: int) -> int:
        """Number of selected members before the local second."""
        day, second = divmod(local, civil.DAY_S)
        at = bisect_left(days, day)
        index = at * self._times.count()
        if at < len(days) and days[at] == day:
            index += self._times.rank(second)
        return bisect_left(picked, index)

    def next_from(self, local: int, steps: Steps) -> int | None:
        """First member at or after the local second."""
        return self.nth_from(local, 0, steps)

    def nth_from(self, local: int, index: int, steps: Steps) -> int | None:
        """Member with a 0-based number, counted from a local second on; None when there are fewer."""
        local = max(local, civil.MIN_LOCAL)
        weeks = (civil.MAX_LOCAL - local) // (7 * civil.DAY_S) + 2
        if local > civil.MAX_LOCAL or index > len(self._bysetpos) * weeks:
            return None
        day: int | None = self._bounds(local // civil.DAY_S)[0]
        while day is not None and (day := self.days.at_or_after(day, steps)) is not None:
            after, days, picked = self._period(day)
            index += self._rank(days, picked, local)
            if index < len(picked):
                found = self._member(days, picked[index])
                return found if found <= civil.MAX_LOCAL else None
            index -= len(picked)
            steps.take(max(local, after * civil.DAY_S))
            day = after
        return None

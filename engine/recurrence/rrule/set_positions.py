"""BYSETPOS over a week, month or year: the n-th of all the times that a period names, DTSTART or not."""

from bisect import bisect_left
from collections.abc import Callable, Iterable

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.clock_set import Times, positions
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.parts import Freq
from lodger.engine.recurrence.rrule.phase import Phase
from lodger.engine.recurrence.rrule.year_masks import span, week_one, week_year
from lodger.engine.recurrence.year_kinds import KIND_OF, YEAR_OF, KindMasks

#: First day and day after the last of the period that holds a day.
Bounds = Callable[[int], tuple[int, int]]


def period_bounds(freq: Freq, wkst: int, week_years: bool) -> Bounds:
    """Give the function that finds a day's period; ``week_years`` for YEARLY with BYWEEKNO."""

    def of_week(day: int) -> tuple[int, int]:
        first = day - (civil.weekday(day) - wkst) % 7
        return first, first + 7

    def of_month(day: int) -> tuple[int, int]:
        year, month, dom = civil.civil(day)
        return day - dom + 1, day - dom + 1 + civil.days_in_month(year, month)

    def of_year(day: int) -> tuple[int, int]:
        year = civil.civil(day)[0]
        return civil.year_start(year), civil.year_start(year + 1)

    def of_week_year(day: int) -> tuple[int, int]:
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


def days_between(allowed: KindMasks, first: int, end: int) -> list[int]:
    """Allowed days in [first, end), which spans at most three years, as if the calendar had no edges."""
    found: list[int] = []
    day = first
    while day < end:
        year = _year_of(day)
        start, after = civil.year_start(year), civil.year_start(year + 1)
        bits = allowed.mask(year) & span(day - start, end - start)
        while bits:
            low = bits & -bits
            found.append(start + low.bit_length() - 1)
            bits ^= low
        day = after
    return found


class Sufficient(KindMasks):
    """Allowed days in periods that have at least ``least`` of them, so that some position exists."""

    def __init__(self, allowed: KindMasks, bounds: Bounds, least: int) -> None:
        super().__init__()
        self._allowed, self._bounds, self._least = allowed, bounds, least

    def _compute(self, year: int) -> int:
        start, end = civil.year_start(year), civil.year_start(year + 1)
        bits, day, kept = self._allowed.mask(year), start, 0
        if self._least == 1:
            return bits
        while day < end:
            first, after = self._bounds(day)
            if first >= start and after <= end:
                size = (bits & span(first - start, after - start)).bit_count()
            else:
                size = len(days_between(self._allowed, first, after))
            if size >= self._least:
                kept |= bits & span(first - start, after - start)
            day = after
        return kept


class SetPositions:
    """Members are local seconds; the last periods looked at are kept, because questions come in order."""

    def __init__(
        self, allowed: KindMasks, phase: Phase | None, times: Times, bysetpos: tuple[int, ...], bounds: Bounds
    ) -> None:
        least = -(-min(abs(p) for p in bysetpos) // times.size)
        self.allowed, self.times, self.bysetpos, self.bounds = allowed, times, bysetpos, bounds
        sufficient = Sufficient(allowed, bounds, least)
        self.never = sufficient.empty()
        self.days = Days(sufficient, phase)
        self._kept: dict[int, list[int]] = {}
        self._picks: dict[int, list[int]] = {}
        self._weights: dict[int, dict[int, int]] = {}

    def _days(self, first: int, after: int) -> list[int]:
        found = self._kept.get(first)
        if found is None:
            if len(self._kept) >= 4:
                self._kept.clear()
            found = self._kept[first] = days_between(self.allowed, first, after)
        return found

    def _picked(self, days: int) -> list[int]:
        """Indices that BYSETPOS picks in a period with so many days, ascending."""
        found = self._picks.get(days)
        if found is None:
            found = self._picks[days] = positions(self.bysetpos, days * self.times.size)
        return found

    def _member(self, days: list[int], index: int) -> int:
        at, nth = divmod(index, self.times.size)
        return days[at] * civil.DAY_S + self.times.nth(nth)

    def _rank(self, days: list[int], picked: list[int], local: int) -> int:
        """How many of the picked lie before the local second."""
        day, second = divmod(local, civil.DAY_S)
        at = bisect_left(days, day)
        index = at * self.times.size
        if at < len(days) and days[at] == day and second:
            index += self.times.up_to(second - 1)
        return bisect_left(picked, index)

    def next(self, local: int) -> int | None:
        """First member from this local second on."""
        if local > civil.MAX_LOCAL:
            return None
        day: int | None = max(self.bounds(max(local // civil.DAY_S, civil.MIN_DAY))[0], civil.MIN_DAY)
        while day is not None and (day := self.days.next(day)) is not None:
            first, after = self.bounds(day)
            days = self._days(first, after)
            picked = self._picked(len(days))
            i = self._rank(days, picked, max(local, civil.MIN_LOCAL))
            if i < len(picked):
                found = self._member(days, picked[i])
                return found if found <= civil.MAX_LOCAL else None
            day = after
        return None

    def previous(self, local: int) -> int | None:
        """Last member up to this local second."""
        if local < civil.MIN_LOCAL:
            return None
        day: int | None = min(self.bounds(min(local // civil.DAY_S, civil.MAX_DAY))[1] - 1, civil.MAX_DAY)
        while day is not None and (day := self.days.previous(day)) is not None:
            first, after = self.bounds(day)
            days = self._days(first, after)
            picked = self._picked(len(days))
            i = self._rank(days, picked, min(local, civil.MAX_LOCAL) + 1)
            if i:
                found = self._member(days, picked[i - 1])
                return found if found >= civil.MIN_LOCAL else None
            day = first - 1
        return None

    # -- counting, by the year in which a period begins

    def bucket(self, local: int) -> int:
        """Year in which the period of a local second begins."""
        return _year_of(self.bounds(local // civil.DAY_S)[0])

    def in_bucket(self, year: int) -> int:
        """How many members the periods have that begin in a year."""
        selected = -1 if self.days.phase is None else self.days.phase.mask(year)
        weights = self._weighed(year)
        return sum(weight * (firsts & selected).bit_count() for weight, firsts in weights.items())

    def before(self, year: int, local: int) -> int:
        """How many of them lie before a local second."""
        counted = 0
        for first, after in self._periods(year):
            days = self._days(first, after)
            picked = self._picked(len(days))
            if after * civil.DAY_S > local:
                return counted + self._rank(days, picked, local)
            counted += len(picked)
        return counted

    def nth(self, year: int, index: int) -> int:
        """Give one of them by its 0-based number."""
        for first, after in self._periods(year):
            days = self._days(first, after)
            picked = self._picked(len(days))
            if index < len(picked):
                return self._member(days, picked[index])
            index -= len(picked)
        raise IndexError

    def _periods(self, year: int) -> Iterable[tuple[int, int]]:
        """Periods that INTERVAL selects among those that begin in a year."""
        phase, start, end = self.days.phase, civil.year_start(year), civil.year_start(year + 1)
        selected = -1 if phase is None else phase.mask(year)
        first, after = self.bounds(min(max(start, civil.MIN_DAY), civil.MAX_DAY))
        while first < end:
            if first >= start and selected >> first - start & 1:
                yield first, after
            if after > civil.MAX_DAY:
                return
            first, after = self.bounds(after)

    def _weighed(self, year: int) -> dict[int, int]:
        """First days of periods by how many members a period has, for the year's kind."""
        kind = KIND_OF[year % 400]
        found = self._weights.get(kind)
        if found is None:
            found = self._weights[kind] = {}
            like = YEAR_OF[kind]
            start, end = civil.year_start(like), civil.year_start(like + 1)
            first, after = self.bounds(start)
            while first < end:
                if first >= start and (picked := len(self._picked(len(days_between(self.allowed, first, after))))):
                    found[picked] = found.get(picked, 0) | 1 << first - start
                first, after = self.bounds(after)
        return found

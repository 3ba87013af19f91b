"""BYSETPOS over a week, month or year: the n-th of all the times that a period names, DTSTART or not."""

from collections.abc import Callable

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.clock_set import Times, positions
from lodger.engine.recurrence.rrule.days import Allowed, Days
from lodger.engine.recurrence.rrule.parts import Freq
from lodger.engine.recurrence.rrule.phase import Phase
from lodger.engine.recurrence.rrule.year_masks import KIND_OF, KindMasks, span, week_one, week_year

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


def days_between(allowed: Allowed, first: int, end: int) -> list[int]:
    """Allowed days in [first, end), which spans at most three years; none outside years 1 to 9999."""
    found: list[int] = []
    first, end = max(first, civil.MIN_DAY), min(end, civil.MAX_DAY + 1)
    day = first
    while day < end:
        year = civil.civil(day)[0]
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

    def __init__(self, allowed: Allowed, bounds: Bounds, least: int) -> None:
        super().__init__()
        self._allowed, self._bounds, self._least = allowed, bounds, least

    def _compute(self, year: int) -> int:
        start, end = civil.year_start(year), civil.year_start(year + 1)
        bits, day, kept = self._allowed.mask(year), start, 0
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
        self, allowed: Allowed, phase: Phase | None, times: Times, bysetpos: tuple[int, ...], bounds: Bounds
    ) -> None:
        least = -(-min(abs(p) for p in bysetpos) // times.size)
        self._allowed, self.times, self._bysetpos, self._bounds = allowed, times, bysetpos, bounds
        sufficient = Sufficient(allowed, bounds, least)
        self.never = sufficient.empty()
        self.days = Days(sufficient, phase)
        self._kept: dict[int, list[int]] = {}
        self._per_kind: dict[int, int] = {}

    def period(self, day: int) -> list[int]:
        """Members of the day's period, whether INTERVAL selects it or not."""
        first, after = self._bounds(day)
        found = self._kept.get(first)
        if found is None:
            days = days_between(self._allowed, first, after)
            size = self.times.size
            found = [
                days[at // size] * civil.DAY_S + self.times.nth(at % size)
                for at in positions(self._bysetpos, len(days) * size)
            ]
            if len(self._kept) >= 4:
                self._kept.clear()
            self._kept[first] = found
        return found

    def next(self, local: int) -> int | None:
        """First member from this local second on."""
        day: int | None = self._bounds(local // civil.DAY_S)[0]
        while day is not None and (day := self.days.next(day)) is not None:
            for each in self.period(day):
                if each >= local:
                    return each
            day = self._bounds(day)[1]
        return None

    def previous(self, local: int) -> int | None:
        """Last member up to this local second."""
        day: int | None = self._bounds(local // civil.DAY_S)[1] - 1
        while day is not None and (day := self.days.previous(day)) is not None:
            for each in reversed(self.period(day)):
                if each <= local:
                    return each
            day = self._bounds(day)[0] - 1
        return None

    def count_in_year(self, year: int, local: int) -> int:
        """How many members the year has up to this local second, which lies in it or just before it."""
        start = civil.year_start(year)
        if local < start * civil.DAY_S:
            return 0
        whole = self.days.phase is None and local == civil.year_start(year + 1) * civil.DAY_S - 1
        if whole and 1 < year < civil.MAX_YEAR:
            kind = KIND_OF[year % 400]
            if kind not in self._per_kind:
                self._per_kind[kind] = self._walk_year(start, local)
            return self._per_kind[kind]
        return self._walk_year(start, local)

    def _walk_year(self, start: int, local: int) -> int:
        day: int | None = self._bounds(max(start, civil.MIN_DAY))[0]
        counted = 0
        while day is not None and (day := self.days.next(day)) is not None and day * civil.DAY_S <= local:
            counted += sum(start * civil.DAY_S <= each <= local for each in self.period(day))
            day = self._bounds(day)[1]
        return counted

"""COUNT without walking: members are counted by year, and the counts up to each year are kept."""

from bisect import bisect_right
from typing import TYPE_CHECKING

from lodger.engine.recurrence import civil

if TYPE_CHECKING:
    from lodger.engine.recurrence.rrule.set_positions import SetPositions
    from lodger.engine.recurrence.rrule.unit_times import UnitTimes


class CountBound:
    """Tells whether a member is among the first ``count`` from ``start`` on."""

    def __init__(self, base: "UnitTimes | SetPositions", start: int, count: int) -> None:
        self._base = base
        self._start = start
        self._count = count
        self._phase = base.days.phase
        # Years that can have members, and how many members come before each; grown as far as questions need.
        self._years = [civil.civil(start // civil.DAY_S)[0]]
        self._before = [0]
        self._end: int | None = None
        self._end_known = False

    def allows(self, member: int) -> bool:
        """Whether the member is not past the last one."""
        if self._end_known:
            return self._end is not None and member <= self._end
        return self.rank(member) <= self._count

    def rank(self, local: int) -> int:
        """How many members lie in [start, local]; exact up to COUNT, above it only greater than COUNT."""
        year = civil.civil(local // civil.DAY_S)[0]
        years, before = self._years, self._before
        while years[-1] < year and before[-1] <= self._count:
            last = civil.year_start(years[-1] + 1) * civil.DAY_S - 1
            before.append(before[-1] + self._in_year(years[-1], last))
            following = years[-1] + 1
            years.append(following if self._phase is None else self._phase.year_from(following))
        i = bisect_right(years, year) - 1
        return before[i] + self._in_year(years[i], min(local, civil.year_start(years[i] + 1) * civil.DAY_S - 1))

    def end(self) -> int | None:
        """The last member, found by bisection over ranks."""
        if not self._end_known:
            low, high = self._start, civil.MAX_LOCAL
            if self.rank(high) <= self._count:
                self._end = self._base.previous(high)
            else:
                while low < high:  # smallest second whose rank reaches COUNT
                    middle = (low + high) // 2
                    if self.rank(middle) >= self._count:
                        high = middle
                    else:
                        low = middle + 1
                self._end = low
            if self._end is not None and self._end < self._start:
                self._end = None
            self._end_known = True
        return self._end

    def _in_year(self, year: int, local: int) -> int:
        """Members of the year in [start, local]."""
        first = max(self._start, civil.year_start(year) * civil.DAY_S)
        if local < first:
            return 0
        counted = self._base.count_in_year(year, local)
        if first == self._start:
            counted -= self._base.count_in_year(year, first - 1)
        return counted

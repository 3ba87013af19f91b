"""COUNT without walking: members are counted by year, and the counts up to each year are kept."""

from typing import TYPE_CHECKING

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.set_positions import SetPositions

if TYPE_CHECKING:
    from lodger.engine.recurrence.rrule.sequence import UnitTimes


class CountBound:
    """Tells whether a member is among the first ``count`` from ``start`` on."""

    def __init__(self, base: "UnitTimes | SetPositions", start: int, count: int) -> None:
        self._base = base
        self._start = start
        self._count = count
        self._first_year = civil.civil(start // civil.DAY_S)[0]
        self._before = [0]  # members before January 1 of first_year + index
        self._end: int | None = None
        self._end_known = False

    def allows(self, member: int) -> bool:
        """Whether the member is not past the last one."""
        if self._end_known:
            return self._end is not None and member <= self._end
        return self.rank(member) <= self._count

    def rank(self, local: int) -> int:
        """How many members lie in [start, local]; no more than COUNT + 1 is promised."""
        year = civil.civil(local // civil.DAY_S)[0]
        while len(self._before) <= year - self._first_year:
            if self._before[-1] > self._count:
                return self._before[-1]
            each = self._first_year + len(self._before) - 1
            last = civil.year_start(each + 1) * civil.DAY_S - 1
            self._before.append(self._before[-1] + self._in_year(each, last))
        return self._before[year - self._first_year] + self._in_year(year, local)

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
        base = self._base
        if isinstance(base, SetPositions):
            return base.count_up_to(first, local)
        counted = base.count_in_year(year, local)
        if first == self._start:
            counted -= base.count_in_year(year, first - 1)
        return counted

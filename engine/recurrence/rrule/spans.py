"""Searches over the whole calendar: which of its 25 spans of 400 years have a day, so that a question looks at two of them."""

from collections.abc import Callable

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.dial import highest, lowest
from lodger.engine.recurrence.meter import spend

_SPANS = civil.MAX_YEAR // civil.CYCLE_YEARS + 1


class Spans:
    """Years with a day of a set that is given by 400 years at once.

    Args:
        days: gives the days of the 400 years from a year on that is 0 modulo 400, a bit each.
    """

    def __init__(self, days: Callable[[int], int]) -> None:
        spend(_SPANS * 10)
        self._days = days
        self._some = sum(1 << span for span in range(_SPANS) if self._of(span))

    def _of(self, span: int) -> int:
        days = self._days(span * civil.CYCLE_YEARS)
        return days if span else days >> _YEAR_0 << _YEAR_0

    def year_from(self, year: int) -> int | None:
        """First year from this one on, 1 or later, with a day."""
        span = year // civil.CYCLE_YEARS
        begin = civil.year_start(span * civil.CYCLE_YEARS)
        if self._some >> span & 1 and (left := self._of(span) >> civil.year_start(year) - begin):
            return civil.civil(civil.year_start(year) + lowest(left))[0]
        later = self._some >> span + 1
        if not later:
            return None
        span += 1 + lowest(later)
        return civil.civil(civil.year_start(span * civil.CYCLE_YEARS) + lowest(self._of(span)))[0]

    def year_to(self, year: int) -> int | None:
        """Last year up to this one, 9999 or earlier, with a day."""
        span = year // civil.CYCLE_YEARS
        begin = civil.year_start(span * civil.CYCLE_YEARS)
        if self._some >> span & 1 and (left := self._of(span) & (1 << civil.year_start(year + 1) - begin) - 1):
            return civil.civil(begin + highest(left))[0]
        earlier = self._some & (1 << span) - 1
        if not earlier:
            return None
        span = highest(earlier)
        return civil.civil(civil.year_start(span * civil.CYCLE_YEARS) + highest(self._of(span)))[0]


#: Days of the year before the calendar begins, which the first span holds.
_YEAR_0 = 366

"""Sets of days that repeat with the calendar: one integer of 366 bits per kind of year.

The Gregorian calendar repeats after 400 years, and within them a year's days are decided by the weekday of January 1
and by which of the neighbouring years are leap years (weeks cross the year's edge). So there are at most :data:`KINDS`
different years, and a set of days is computed once for each, when first asked for.
"""

from collections.abc import Sequence

from lodger.engine.recurrence import civil

FULL = ((1 << 365) - 1, (1 << 366) - 1)
EVERY_DAY = (1 << 366) - 1


def _kinds() -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    seen: dict[tuple[int, ...], int] = {}
    kinds: list[int] = []
    years: list[int] = []
    counts: list[int] = []
    leaps = [civil.is_leap(year) for year in range(1998, 2402)]
    for year in range(2000, 2400):
        key = (civil.weekday(civil.year_start(year)), *leaps[year - 2000 : year - 1995])
        if key not in seen:
            seen[key] = len(years)
            years.append(year)
            counts.append(0)
        kinds.append(seen[key])
        counts[seen[key]] += 1
    return tuple(kinds), tuple(years), tuple(counts)


#: Kind of each year of the cycle (index: year modulo 400), a year of each kind, and how many the cycle has of it.
KIND_OF, YEAR_OF, COUNT_OF = _kinds()
KINDS = len(YEAR_OF)

#: MONTH[leap][month]: the days of a month.
MONTH = tuple(
    (0, *(((1 << table[m + 1] - table[m]) - 1) << table[m] for m in range(1, 13))) for table in civil.DAYS_BEFORE_MONTH
)


class KindMasks:
    """Days allowed in each kind of year, computed when first asked for."""

    def __init__(self) -> None:
        self._cache: list[int | None] = [None] * KINDS
        self._total: int | None = None
        self._years: int | None = None
        self._months: int | None = None
        self._cycle: int | None = None

    def mask(self, year: int) -> int:
        """Bit n is set when day n of the year (January 1 is 0) is allowed."""
        kind = KIND_OF[year % 400]
        found = self._cache[kind]
        if found is None:
            found = self._cache[kind] = self._compute(YEAR_OF[kind])
        return found

    def total(self) -> int:
        """Allowed days in 400 years."""
        if self._total is None:
            self._total = sum(self.mask(year).bit_count() * n for year, n in zip(YEAR_OF, COUNT_OF, strict=True))
        return self._total

    def empty(self) -> bool:
        """Whether no day of any year is allowed."""
        return not any(self.mask(year) for year in YEAR_OF)

    def contains(self, day: int) -> bool:
        """Whether the day is allowed."""
        year = civil.civil(day)[0]
        return bool(self.mask(year) >> (day - civil.year_start(year)) & 1)

    def years(self) -> int:
        """Bit n: a year that is n modulo 400 has an allowed day."""
        if self._years is None:
            some = [self.mask(year) != 0 for year in YEAR_OF]
            self._years = sum(1 << n for n in range(400) if some[KIND_OF[n]])
        return self._years

    def months(self) -> int:
        """Bit n: month n of the 400 years (January of year 0 modulo 400 is 0) has an allowed day."""
        if self._months is None:
            some = []
            for year in YEAR_OF:
                days, months = self.mask(year), MONTH[civil.is_leap(year)]
                some.append(sum(1 << month - 1 for month in range(1, 13) if days & months[month]))
            found = 0
            for n in reversed(range(400)):
                found = found << 12 | some[KIND_OF[n]]
            self._months = found
        return self._months

    def cycle(self) -> int:
        """All days of 400 years from January 1 of a year 0 modulo 400 on, a bit each."""
        if self._cycle is None:
            found = 0
            for first in range(400, 800, 50):
                chunk, begin = 0, civil.year_start(first)
                for year in range(first, first + 50):
                    chunk |= self.mask(year) << civil.year_start(year) - begin
                found |= chunk << begin - civil.year_start(400)
            self._cycle = found
        return self._cycle

    def year_from(self, year: int) -> int | None:
        """First year from this one on with an allowed day."""
        return first_of_cycle(self.years(), 400, year, civil.MAX_YEAR)

    def year_to(self, year: int) -> int | None:
        """Last year up to this one with an allowed day."""
        return last_of_cycle(self.years(), 400, year, civil.MIN_YEAR)

    def _compute(self, year: int) -> int:
        raise NotImplementedError


def first_of_cycle(bits: int, size: int, at: int, last: int) -> int | None:
    """First number from ``at`` on, up to ``last``, whose residue modulo ``size`` is in the set."""
    if not bits:
        return None
    place = at % size
    left = bits >> place
    ahead = (left & -left).bit_length() - 1 if left else size - place + (bits & -bits).bit_length() - 1
    return at + ahead if at + ahead <= last else None


def last_of_cycle(bits: int, size: int, at: int, first: int) -> int | None:
    """Last number up to ``at``, down to ``first``, whose residue modulo ``size`` is in the set."""
    if not bits:
        return None
    place = at % size
    left = bits & (2 << place) - 1
    back = place - (left.bit_length() - 1) if left else place + 1 + size - bits.bit_length()
    return at - back if at - back >= first else None


class Given(KindMasks):
    """Days that are known for each kind of year."""

    def __init__(self, by_kind: Sequence[int]) -> None:
        super().__init__()
        self._cache = list(by_kind)

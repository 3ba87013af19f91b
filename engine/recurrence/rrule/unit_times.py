"""The same times in each member unit: units step by step, times inside them by look-up."""

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.clock_set import Times
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps
from lodger.engine.recurrence.rrule.days import DaySet


class UnitTimes:
    """The same times in each member unit; members are local seconds."""

    def __init__(self, steps: DaySet | ClockSteps, unit_s: int, times: Times) -> None:
        self.steps: DaySet | ClockSteps = steps
        self.unit_s = unit_s
        self.times = times

    @property
    def days(self) -> DaySet:
        """The days that can hold a member."""
        return self.steps.days if isinstance(self.steps, ClockSteps) else self.steps

    def next(self, local: int) -> int | None:
        """First member from this local second on."""
        unit, offset = divmod(local, self.unit_s)
        if offset > self.times.last:
            unit, offset = unit + 1, 0
        found = self.steps.next(unit)
        if found is None:
            return None
        if found > unit:
            return found * self.unit_s + self.times.first
        inside = self.times.at_or_after(offset)
        assert inside is not None
        return found * self.unit_s + inside

    def previous(self, local: int) -> int | None:
        """Last member up to this local second."""
        unit, offset = divmod(local, self.unit_s)
        if offset < self.times.first:
            unit, offset = unit - 1, self.unit_s
        found = self.steps.previous(unit)
        if found is None:
            return None
        if found < unit:
            return found * self.unit_s + self.times.last
        inside = self.times.at_or_before(offset)
        assert inside is not None
        return found * self.unit_s + inside

    # -- counting, by calendar year

    def bucket(self, local: int) -> int:
        """Year of a local second."""
        return civil.civil(local // civil.DAY_S)[0]

    def in_bucket(self, year: int) -> int:
        """How many members a year has."""
        return self.in_days(civil.year_start(year), self.days.mask(year)) if 1 <= year <= civil.MAX_YEAR else 0

    def in_days(self, first: int, days: int) -> int:
        """How many members days have that are given as bits from a first day on, all of them allowed."""
        if not isinstance(self.steps, ClockSteps):
            return days.bit_count() * self.times.size
        if self.steps.turn_days == 1:
            per_day = self.steps.rank((first + 1) * self.steps.units) - self.steps.rank(first * self.steps.units)
            return days.bit_count() * per_day * self.times.size
        return self.steps.in_days(first, days) * self.times.size

    def before(self, year: int, local: int) -> int:
        """How many members of a year lie before a local second of it."""
        start = civil.year_start(year)
        day, second = divmod(local, civil.DAY_S)
        mask = self.days.mask(year)
        counted = self.in_days(start, mask & (1 << day - start) - 1)
        if not mask >> (day - start) & 1:
            return counted
        if not isinstance(self.steps, ClockSteps):
            return counted + (self.times.up_to(second - 1) if second else 0)
        unit, offset = divmod(local, self.unit_s)
        counted += (self.steps.rank(unit) - self.steps.rank(day * self.steps.units)) * self.times.size
        if offset and self.steps.at(unit):
            counted += self.times.up_to(offset - 1)
        return counted

    def nth(self, year: int, index: int) -> int:
        """Give a member of a year by its 0-based number."""
        low, high = civil.year_start(year) * civil.DAY_S, civil.year_start(year + 1) * civil.DAY_S - 1
        while low < high:  # greatest second before which no more than so many members lie
            middle = (low + high + 1) // 2
            if self.before(year, middle) <= index:
                low = middle
            else:
                high = middle - 1
        return low

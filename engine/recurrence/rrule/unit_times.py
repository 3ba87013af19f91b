"""The same times in each member unit: units step by step, times inside them by look-up."""

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.clock_set import Times
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps
from lodger.engine.recurrence.rrule.days import Days


class UnitTimes:
    """The same times in each member unit; members are local seconds."""

    def __init__(self, steps: Days | ClockSteps, unit_s: int, times: Times) -> None:
        self.steps: Days | ClockSteps = steps
        self.unit_s = unit_s
        self.times = times

    @property
    def days(self) -> Days:
        """The days that can hold a member."""
        return self.steps if isinstance(self.steps, Days) else self.steps.days

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

    def count_in_year(self, year: int, local: int) -> int:
        """How many members the year has up to this local second, which lies in it or just before it."""
        start = civil.year_start(year)
        unit, offset = divmod(local, self.unit_s)
        if isinstance(self.steps, ClockSteps):
            per_day = civil.DAY_S // self.unit_s
            day, position = divmod(unit, per_day)
            if day < start:
                return 0
            whole = self.steps.count_days(year, day - start)
            if not self.steps.days.allowed.mask(year) >> (day - start) & 1:
                return whole * self.times.size
            whole += self.steps.count_in_day(day, position - 1)
            counted = whole * self.times.size
            if self.steps.in_day(day, position) == position:
                counted += self.times.up_to(offset)
            return counted
        if unit < start:
            return 0
        mask = self.steps.mask(year)
        counted = (mask & (1 << (unit - start)) - 1).bit_count() * self.times.size
        if mask >> (unit - start) & 1:
            counted += self.times.up_to(offset)
        return counted

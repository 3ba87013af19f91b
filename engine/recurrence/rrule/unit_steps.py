"""Every n-th hour, minute or second of a sub-daily rule with an INTERVAL that does not divide the day."""

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.dial import Dial, Times, stride
from lodger.engine.recurrence.calendar.yeardays import YearDays
from lodger.engine.recurrence.search import Steps


class UnitSteps:
    """The times inside each n-th unit that lies on an allowed day and at an allowed position in the day.

    Args:
        days: allowed days.
        positions: allowed first seconds of units within the day.
        inside: seconds of a unit that are members.
        unit_s: length of the unit.
        interval: INTERVAL, in units.
        origin: number of DTSTART's unit since 1970.
    """

    def __init__(self, days: YearDays, positions: Dial, inside: Times, unit_s: int, interval: int, origin: int) -> None:
        self.days, self._positions, self._inside = days, positions, inside
        self._unit_s, self._n, self._origin = unit_s, interval, origin
        self._units = civil.DAY_S // unit_s

    def _step_from(self, unit: int) -> int:
        """Return the first unit at or after this one that INTERVAL selects."""
        return unit + (self._origin - unit) % self._n

    def next_from(self, local: int, steps: Steps) -> int | None:
        """First member at or after the local second."""
        wanted, offset = divmod(max(local, civil.MIN_LOCAL), self._unit_s)
        if offset > self._inside.last():
            wanted, offset = wanted + 1, 0
        unit = self._step_from(wanted)
        while True:
            day, position = divmod(unit, self._units)
            allowed = self.days.at_or_after(day, steps)
            if allowed is None:
                return None
            if allowed > day:
                unit = self._step_from(allowed * self._units)
            else:
                second = self._positions.at_or_after(position * self._unit_s)
                if second is None:
                    unit = self._step_from((day + 1) * self._units)
                elif second > position * self._unit_s:
                    unit = self._step_from(day * self._units + second // self._unit_s)
                else:
                    time = self._inside.at_or_after(offset if unit == wanted else 0)
                    assert time is not None
                    return unit * self._unit_s + time
            steps.take(unit * self._unit_s)

    def nth_from(self, local: int, index: int, steps: Steps) -> int | None:
        """Member with a 0-based number, counted from a local second on; None when there are fewer."""
        first = self.next_from(local, steps)
        if first is None:
            return None
        unit, offset = divmod(first, self._unit_s)
        left, nth = divmod(index + self._inside.rank(offset), self._inside.count())
        if unit + left * self._n > civil.MAX_LOCAL // self._unit_s:
            return None
        unit = self._unit_after(unit, left, steps)
        found = unit * self._unit_s + self._inside.nth(nth)
        return found if found <= civil.MAX_LOCAL else None

    def _unit_after(self, unit: int, left: int, steps: Steps) -> int:
        """Return the unit that comes ``left`` selected and allowed units after a unit."""
        if self._positions.count() == self._units and self.days.every_day():
            return unit + left * self._n
        allowed, each = self._positions.bits(self._unit_s), stride(0, self._units, self._n)
        last = civil.MAX_LOCAL // self._unit_s
        while unit <= last:
            day, position = divmod(unit, self._units)
            following = self.days.at_or_after(day, steps)
            if following is None:
                break
            if following > day:
                unit = self._step_from(following * self._units)
                steps.take(unit * self._unit_s)
                continue
            hits = allowed >> position & each
            if left < hits.bit_count():
                for _ in range(left):
                    hits &= hits - 1
                return unit + (hits & -hits).bit_length() - 1
            left -= hits.bit_count()
            unit = self._step_from((day + 1) * self._units)
            steps.take(unit * self._unit_s)
        return last + 1

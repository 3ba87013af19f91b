"""COUNT when a rule is read: which member is the last, by counting years and centuries instead of walking members."""

from itertools import pairwise

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.meter import spend
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps
from lodger.engine.recurrence.rrule.set_positions import SetPositions
from lodger.engine.recurrence.rrule.unit_times import UnitTimes
from lodger.engine.recurrence.year_kinds import COUNT_OF, YEAR_OF

#: Years that are counted one by one before 400 are counted at once.
_ONE_BY_ONE = 40
#: What counting one is.
_YEAR = 20
#: Up to so many days the members of each day before they repeat are kept as sets, a bit per day.
_REPEATING = 2_000_000


def last_member(base: UnitTimes | SetPositions, start: int, count: int) -> int | None:
    """Give the ``count``-th member from ``start`` on; None when there are not so many up to year 9999."""
    if base.next(start) is None:
        return None
    year = base.bucket(start)
    skipped = base.before(year, start)
    left = count + skipped
    steps = base.steps if isinstance(base, UnitTimes) and isinstance(base.steps, ClockSteps) else None
    if steps is not None:
        assert isinstance(base, UnitTimes)
        if (civil.MAX_LOCAL - start) // (steps.n * base.unit_s) < count // base.times.size - 1:
            return None  # more than there are steps
    phase = base.days.phase if isinstance(base, SetPositions) else getattr(base.days, "phase", None)
    alike = phase is None and (steps is None or steps.turn_days == 1)
    counted = _Counted(base, steps) if steps is not None and not alike else None
    try:
        for walked in range(civil.MAX_YEAR + 2):
            if year > civil.MAX_YEAR:
                return None
            if walked >= _ONE_BY_ONE:
                if alike and walked == _ONE_BY_ONE:
                    cycle = sum(base.in_bucket(each) * n for each, n in zip(YEAR_OF, COUNT_OF, strict=True))
                    cycles = (left - 1) // cycle if cycle else civil.MAX_YEAR
                    left -= cycles * cycle
                    year += 400 * cycles
                    if year > civil.MAX_YEAR:
                        return None
                elif counted is not None:
                    while year % 400 == 0 and (cycle := counted.in_cycle(year)) < left:
                        left -= cycle
                        year += 400
                        if year > civil.MAX_YEAR:
                            return None
            spend(_YEAR)
            total = counted.in_year(year) if counted is not None and walked >= _ONE_BY_ONE else base.in_bucket(year)
            if left <= total:
                found = base.nth(year, left - 1)
                return found if found <= civil.MAX_LOCAL else None
            left -= total
            year += 1
        return None
    finally:
        if steps is not None:
            steps.forget()


class _Counted:
    """Members of whole years and cycles of a sub-daily rule whose days are not all alike."""

    def __init__(self, base: UnitTimes | SetPositions, steps: ClockSteps) -> None:
        self._steps = steps
        self._size = base.times.size
        self._sets: list[tuple[int, int, bytes]] | None = None  # weight, length of data in days, data

    def in_year(self, year: int) -> int:
        start = civil.year_start(year)
        return self._in_days(start, self._steps.days.mask(year))

    def in_cycle(self, year: int) -> int:
        """Members of 400 years from a year that is 0 modulo 400 on."""
        days = getattr(self._steps.days, "allowed", None)
        if days is None:
            spend(400 * _YEAR)
            return sum(self.in_year(each) for each in range(year, min(year + 400, civil.MAX_YEAR + 1)))
        end = civil.MAX_DAY + 1 - civil.year_start(year)
        return self._in_days(civil.year_start(year), days.cycle() & (1 << min(end, civil.CYCLE_DAYS)) - 1)

    def _in_days(self, first: int, days: int) -> int:
        if self._steps.turn_days > _REPEATING:
            return self._by_steps(first, days) * self._size
        if self._sets is None:
            self._sets = self._repeating()
        length, counted = days.bit_length(), 0
        at = first % self._steps.turn_days
        for weight, have, data in self._sets:
            window, done = 0, 0
            while done < length:
                begin = (at + done) % self._steps.turn_days
                take = min(length - done, have - begin)
                piece = int.from_bytes(data[begin >> 3 : (begin + take + 7) >> 3], "little") >> (begin & 7)
                window |= (piece & (1 << take) - 1) << done
                done += take
            counted += weight * (window & days).bit_count()
        return counted * self._size

    def _repeating(self) -> list[tuple[int, int, bytes]]:
        """Sets of days with a binary digit of their number of members set, from day 0 on, as long as they do not repeat."""
        steps, turn = self._steps, self._steps.turn_days
        spend(turn)
        counts = bytearray(turn)
        if steps.n > steps.units:
            step = 0
            while (step := steps.hit_from(step)) < steps.turn:
                counts[(steps.origin + step * steps.n) // steps.units % turn] = 1
                step += 1
            planes = [bytes(counts)]
        else:
            ranks = [steps.rank(day * steps.units) for day in range(turn + 1)]
            each = [b - a for a, b in pairwise(ranks)]
            planes = [bytes([n >> digit & 1 for n in each]) for digit in range(max(each).bit_length())]
        found = []
        for digit, plane in enumerate(planes):
            bits = int(plane[::-1].translate(_DIGITS), 2)
            width = turn
            while width < civil.CYCLE_DAYS:  # short turns are laid side by side
                bits |= bits << width
                width *= 2
            found.append((1 << digit, width, bits.to_bytes(-(-width // 8), "little")))
        return found

    def _by_steps(self, first: int, days: int) -> int:
        """Steps of several weeks and more, one by one."""
        steps, counted = self._steps, 0
        step = steps.hit_from(steps.step_from(first * steps.units))
        while (day := (steps.origin + step * steps.n) // steps.units - first) < days.bit_length():
            counted += days >> day & 1
            step = steps.hit_from(step + 1)
        return counted


_DIGITS = bytes(48 + min(value, 1) for value in range(256))

"""One RRULE from one DTSTART as a sequence of local seconds: seek, bounds and COUNT."""

from typing import Protocol

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.clock_set import ClockSet, TimeList, Times, positions
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps, position_table
from lodger.engine.recurrence.rrule.count_bound import CountBound
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.parts import UNIT_S, Freq, Rule
from lodger.engine.recurrence.rrule.phase import Months, Phase, Residues, WeekYears, Years
from lodger.engine.recurrence.rrule.set_positions import SetPositions, period_bounds
from lodger.engine.recurrence.rrule.year_masks import YearMasks, week_year
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap


class Steps(Protocol):
    """Ascending unit numbers: days, hours, minutes or seconds since 1970 local."""

    def next(self, unit: int) -> int | None:
        """First member from this unit on."""
        ...

    def previous(self, unit: int) -> int | None:
        """Last member up to this unit."""
        ...


def phase_of(rule: Rule, start_day: int) -> Phase | None:
    """The periods that INTERVAL selects for a FREQ down to DAILY; None when it selects every one."""
    n = rule.interval
    if n == 1:
        return None
    year, month, _ = civil.civil(start_day)
    if rule.freq is Freq.YEARLY:
        if rule.byweekno:
            return WeekYears(n, week_year(start_day, rule.wkst), rule.wkst)
        return Years(n, year)
    if rule.freq is Freq.MONTHLY:
        return Months(n, year * 12 + month - 1)
    if rule.freq is Freq.WEEKLY:
        first = start_day - (civil.weekday(start_day) - rule.wkst) % 7
        return Residues(7 * n, [(first + i) % (7 * n) for i in range(7)])
    return Residues(n, [start_day % n])


class UnitTimes:
    """The same times in each member unit; members are local seconds."""

    def __init__(self, steps: Days | ClockSteps, unit_s: int, times: Times) -> None:
        self.steps: Days | ClockSteps = steps
        self.unit_s = unit_s
        self.times = times

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


class RuleSequence:
    """A LocalSequence from DTSTART on, up to UNTIL, at most COUNT members.

    Args:
        rule: as written; what it lacks is derived from ``start``.
        start: DTSTART, local seconds. It is a member only when it fulfils the rule.
        until: last local second that may be a member.
    """

    def __init__(self, rule: Rule, start: int, until: int | None = None) -> None:
        self.rule = rule
        self.start = start
        self.until = min(civil.MAX_LOCAL, until) if until is not None else civil.MAX_LOCAL
        self.filled = filled = rule.filled(start)
        self._why: str | None = None
        self._base = self._build(filled)
        self._count = None
        if rule.count is not None and self._base is not None:
            self._count = CountBound(self._base, start, rule.count)

    def _build(self, rule: Rule) -> UnitTimes | SetPositions | None:
        day = self.start // civil.DAY_S
        masks = YearMasks(rule)
        if not masks.total():
            self._why = "no day of the 400-year calendar cycle fulfils its day parts"
            return None
        if rule.freq <= Freq.DAILY:
            times: Times = ClockSet(rule.byhour, rule.byminute, rule.bysecond)
            phase = phase_of(rule, day)
            if rule.bysetpos and rule.freq < Freq.DAILY:
                bounds = period_bounds(rule.freq, rule.wkst, bool(rule.byweekno))
                chosen = SetPositions(masks, phase, times, rule.bysetpos, bounds)
                if not chosen.days.allowed.total():
                    self._why = "no period has as many times as BYSETPOS counts"
                    return None
                return chosen
            steps: Days | ClockSteps = Days(masks, phase)
        else:
            if rule.freq is Freq.HOURLY:
                times = ClockSet((0,), rule.byminute, rule.bysecond)
            elif rule.freq is Freq.MINUTELY:
                times = ClockSet((0,), (0,), rule.bysecond)
            else:
                times = TimeList((0,))
            unit = UNIT_S[rule.freq]
            table = position_table(rule.byhour, rule.byminute, rule.bysecond, unit)
            steps = ClockSteps(masks, table, rule.interval, self.start // unit)
            if steps.never:
                self._why = (
                    "INTERVAL, counted from DTSTART, never meets the hours, minutes and seconds it names"
                )
                return None
        if rule.bysetpos:
            picked = positions(rule.bysetpos, times.size)
            if not picked:
                self._why = "no period has as many times as BYSETPOS counts"
                return None
            times = TimeList(tuple(times.nth(at) for at in picked))
        return UnitTimes(steps, UNIT_S.get(rule.freq, civil.DAY_S), times)

    def next_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """First member after (or at) the local second."""
        if self._base is None:
            return None
        if not inclusive:
            local += 1
        if local < self.start:
            local = self.start
        if local > self.until:
            return None
        found = self._base.next(local)
        if found is None or found > self.until:
            return None
        if self._count is not None and not self._count.allows(found):
            return None
        return found

    def previous_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """Last member before (or at) the local second."""
        if self._base is None:
            return None
        if not inclusive:
            local -= 1
        if local > self.until:
            local = self.until
        if local < self.start:
            return None
        found = self._base.previous(local)
        if found is None or found < self.start:
            return None
        if self._count is not None and not self._count.allows(found):
            return self._count.end()
        return found

    def never_reason(self) -> str | None:
        """Say why there is no member, when there is none."""
        if self._why is not None:
            return self._why
        assert self._base is not None
        first = self._base.next(self.start)
        if first is None:
            return (
                "no period that INTERVAL selects before year 10000 has a day and time that fulfil its parts"
            )
        if first > self.until:
            return "its first slot would come after UNTIL"
        return None

    def ends(self) -> bool:
        """Whether COUNT or UNTIL bounds it, or it has no member."""
        return self._base is None or self.rule.count is not None or self.until < civil.MAX_LOCAL

    def default_dst(self) -> DstPolicy:
        """RFC 5545 for skipped times; a rule that repeats within the day runs through both hours of a fold."""
        return DstPolicy(Gap.SHIFT, Fold.BOTH if self.rule.freq >= Freq.HOURLY else Fold.FIRST)

    def text(self) -> str:
        """One exact English sentence."""
        from lodger.engine.recurrence.rrule.text import rule_text

        return rule_text(self.rule, self.start)

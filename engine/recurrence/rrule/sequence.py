"""One RRULE from one DTSTART as a sequence of local seconds: seek, bounds and COUNT."""

from bisect import bisect_left, bisect_right

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.clock_set import ClockSet, TimeList, Times, positions
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps, position_table
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.parts import UNIT_S, Freq, Rule
from lodger.engine.recurrence.rrule.phase import Months, Phase, WeekYears, Years
from lodger.engine.recurrence.rrule.residues import Residues
from lodger.engine.recurrence.rrule.set_positions import SetPositions, period_bounds
from lodger.engine.recurrence.rrule.text import rule_text
from lodger.engine.recurrence.rrule.unit_times import UnitTimes
from lodger.engine.recurrence.rrule.year_masks import YearMasks, week_year
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap

#: A second after, or before, all there are: stands for a member that does not exist.
NEVER = 1 << 62


def phase_of(rule: Rule, start_day: int) -> Phase | None:
    """The periods that INTERVAL selects for a FREQ down to DAILY; None when it selects every one."""
    n = rule.interval
    if n == 1:
        return None
    year, month, _ = civil.civil(start_day)
    if rule.freq is Freq.YEARLY:
        if rule.byweekno and not rule.dateutil:
            return WeekYears(n, week_year(start_day, rule.wkst), rule.wkst)
        return Years(n, year)
    if rule.freq is Freq.MONTHLY:
        return Months(n, year * 12 + month - 1)
    if rule.freq is Freq.WEEKLY:
        first = start_day - (civil.weekday(start_day) - rule.wkst) % 7
        return Residues(7 * n, [(first + i) % (7 * n) for i in range(7)])
    return Residues(n, [start_day % n])


class RuleSequence:
    """A LocalSequence from DTSTART on, up to UNTIL, at most COUNT members.

    Args:
        rule: as written; what it lacks is derived from ``start``.
        start: DTSTART, local seconds. It is a member only when it fulfils the rule.
        until: last local second that may be a member.

    Attributes:
        start, until: first and last second that its pattern may have a member at; COUNT is in ``until``.
        head: members before ``start`` that the pattern does not have (a first week as python-dateutil reads it).
    """

    def __init__(self, rule: Rule, start: int, until: int | None = None) -> None:
        self.rule = rule
        self.start = self.origin = start
        # What was asked last, and the member found: a zone asks on both sides of a change of its clock, and a set has
        # rules with members far away.
        self._ahead, self._behind = (1, 0), (0, 1)
        self.until = min(civil.MAX_LOCAL, until) if until is not None else civil.MAX_LOCAL
        self._bounded = rule.count is not None or self.until < civil.MAX_LOCAL
        self.filled = filled = rule.filled(start)
        self.head: tuple[int, ...] = ()
        self._why: str | None = None
        self.base = self._build(filled)
        count = rule.count
        if rule.dateutil and rule.freq is Freq.WEEKLY and (rule.bysetpos or rule.byweekno):
            from lodger.engine.recurrence.rrule.dateutil_reading import first_week

            week = first_week(filled, start)
            if week is not None:
                members, self.start = week
                self.head = tuple(each for each in members if each <= self.until)[:count]
                count = None if count is None else count - len(self.head)
        if count is not None and self.base is not None:
            from lodger.engine.recurrence.rrule.tally import last_member

            last = last_member(self.base, self.start, count) if count else self.start - 1
            if last is not None:
                self.until = min(self.until, last)

    def _build(self, rule: Rule) -> UnitTimes | SetPositions | None:
        day = self.start // civil.DAY_S
        masks = YearMasks(rule)
        if rule.dateutil and rule.byweekno:
            from lodger.engine.recurrence.rrule.dateutil_reading import DateutilMasks

            masks = DateutilMasks(rule)
        if masks.empty():
            self._why = "no day of the 400-year calendar cycle fulfils its day parts"
            return None
        if rule.freq <= Freq.DAILY:
            times: Times = ClockSet(rule.byhour, rule.byminute, rule.bysecond)
            phase = phase_of(rule, day)
            if rule.bysetpos and rule.freq < Freq.DAILY:
                bounds = period_bounds(rule.freq, rule.wkst, bool(rule.byweekno) and not rule.dateutil)
                chosen = SetPositions(masks, phase, times, rule.bysetpos, bounds)
                if chosen.never:
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
                self._why = "INTERVAL, counted from DTSTART, never meets the hours, minutes and seconds it names"
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
        if self.base is None:
            return None
        if not inclusive:
            local += 1
        if local < self.start:
            if self.head and local <= self.head[-1]:
                return self.head[bisect_left(self.head, local)]
            local = self.start
        if local > self.until:
            return None
        asked, member = self._ahead
        if asked <= local <= member:
            return member if member <= self.until else None
        found = self.base.next(local)
        self._ahead = (local, NEVER if found is None else found)
        return None if found is None or found > self.until else found

    def previous_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """Last member before (or at) the local second."""
        if self.base is None:
            return None
        if not inclusive:
            local -= 1
        if local >= self.start <= self.until:
            local = min(local, self.until)
            asked, member = self._behind
            if not member <= local <= asked:
                found = self.base.previous(local)
                member = -NEVER if found is None else found
                self._behind = (local, member)
            if member >= self.start:
                return member
        i = bisect_right(self.head, local)
        return self.head[i - 1] if i else None

    def never_reason(self) -> str | None:
        """Say why there is no member, when there is none."""
        if self._why is not None:
            return self._why
        assert self.base is not None
        first = self.base.next(self.start)
        if first is None:
            return "no period that INTERVAL selects before year 10000 has a day and time that fulfil its parts"
        if first > self.until:
            return "its first slot would come after UNTIL"
        return None

    def ends(self) -> bool:
        """Whether COUNT or UNTIL bounds it, or it has no member."""
        return self.base is None or self._bounded

    def default_dst(self) -> DstPolicy:
        """RFC 5545 for skipped times; a rule that repeats within the day runs through both hours of a fold."""
        both = self.rule.freq >= Freq.HOURLY and not self.rule.dateutil
        return DstPolicy(Gap.SHIFT, Fold.BOTH if both else Fold.FIRST)

    def text(self) -> str:
        """One exact English sentence."""
        until = self.until if self.rule.until is not None else None
        return rule_text(self.rule, self.origin, until)

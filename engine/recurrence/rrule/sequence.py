"""One RRULE from one DTSTART as a sequence of local seconds: seek, bounds and COUNT."""

from itertools import pairwise
from math import gcd

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.dial import (
    ALL_HOURS,
    ALL_MINUTES,
    ALL_SECONDS,
    Dial,
    TimeList,
    Times,
    of_values,
    stride,
)
from lodger.engine.recurrence.calendar.grid import Grid
from lodger.engine.recurrence.calendar.min_spacing import of_dial, of_times, united
from lodger.engine.recurrence.calendar.yeardays import YearDays
from lodger.engine.recurrence.duration import SECOND_US
from lodger.engine.recurrence.rrule.parts import UNIT_S, Freq, Rule
from lodger.engine.recurrence.rrule.phase import selection_of
from lodger.engine.recurrence.rrule.set_positions import PeriodPicks, period_bounds, positions
from lodger.engine.recurrence.rrule.unit_steps import UnitSteps
from lodger.engine.recurrence.rrule.year_masks import YearMasks
from lodger.engine.recurrence.rule import WALL, Pace
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import OutOfSteps, Steps

#: Steps in which the last member by COUNT is found when the rule is read.
_COUNT_STEPS = 200_000
_NO_POSITION = "no period has as many times as BYSETPOS counts"


class RuleSequence:
    """Members from DTSTART on, up to UNTIL, at most COUNT members.

    Args:
        rule: as written; missing parts are derived from ``start``.
        start: DTSTART, local seconds. It is a member only when it fulfils the rule.
        until: last local second that may be a member.

    Raises:
        RuleInvalid: ``count_too_far``.
    """

    def __init__(self, rule: Rule, start: int, until: int | None = None) -> None:
        self.rule = rule
        self._start = start
        self._until = civil.MAX_LOCAL if until is None else min(civil.MAX_LOCAL, until)
        self._bounded = rule.count is not None or self._until < civil.MAX_LOCAL
        self._never: str | None = None
        filled = rule.filled(start)
        self._pace = united(())
        self._members = self._build(filled)
        if rule.count is not None and self._members is not None:
            self._count(rule.count)

    def _count(self, count: int) -> None:
        """Make the ``count``-th member the last slot."""
        assert self._members is not None
        try:
            last = self._members.nth_from(self._start, count - 1, Steps(_COUNT_STEPS))
        except OutOfSteps:
            raise RuleInvalid("count_too_far", count=count) from None
        if last is not None:
            self._until = min(self._until, last)

    def _build(self, rule: Rule) -> Grid | UnitSteps | PeriodPicks | None:
        """Return the slots of a rule in the form that is searched fastest."""
        masks = YearMasks(rule)
        if rule.freq > Freq.DAILY:
            return self._sub_daily(rule, YearDays(masks.of_year))
        times = Dial(of_values(rule.byhour), of_values(rule.byminute), of_values(rule.bysecond))
        selection = selection_of(rule, self._start // civil.DAY_S)
        self._pace = of_dial(times)
        if rule.bysetpos and rule.freq < Freq.DAILY:
            bounds = period_bounds(rule.freq, rule.wkst, bool(rule.byweekno))
            return PeriodPicks(masks.of_year, selection, times, rule.bysetpos, bounds)
        days = YearDays(masks.of_year, selection=selection)
        if not rule.bysetpos:
            return Grid(days, times)
        picked = self._picked(times, rule.bysetpos)
        if picked is None:
            return None
        self._pace = of_times(picked.seconds)
        return Grid(days, picked)

    def _sub_daily(self, rule: Rule, days: YearDays) -> Grid | UnitSteps | None:
        """Return the slots of an HOURLY, MINUTELY or SECONDLY rule on its days; None if it has no time of day."""
        hours = of_values(rule.byhour) or ALL_HOURS
        minutes = of_values(rule.byminute) or ALL_MINUTES
        seconds = of_values(rule.bysecond) or ALL_SECONDS
        n, unit_s = rule.interval, UNIT_S[rule.freq]
        origin = self._start // unit_s
        size = 24 if rule.freq is Freq.HOURLY else 60
        if size % n == 0 and not rule.bysetpos:
            each = stride(origin % n, size, n)  # the same hours, minutes or seconds every time
            by_freq = {Freq.HOURLY: (each, -1, -1), Freq.MINUTELY: (-1, each, -1), Freq.SECONDLY: (-1, -1, each)}
            h, m, s = by_freq[rule.freq]
            times = Dial(hours & h, minutes & m, seconds & s)
            self._pace = of_dial(times)
            if not times.is_empty():
                return Grid(days, times)
        positions_of = Dial(hours, minutes if unit_s < 3600 else 1, seconds if unit_s == 1 else 1)
        inside_of = Dial(1, minutes if unit_s == 3600 else 1, seconds if unit_s > 1 else 1)
        common = gcd(n, civil.DAY_S // unit_s)
        if not positions_of.bits(unit_s) & stride(origin % common, civil.DAY_S // unit_s, common):
            self._never = "INTERVAL, counted from DTSTART, never meets the hours, minutes and seconds it names"
            return None
        inside: Times | None = self._picked(inside_of, rule.bysetpos) if rule.bysetpos else inside_of
        if inside is None:
            return None
        self._pace = _pace_of_steps(inside, unit_s, n, origin)
        return UnitSteps(days, positions_of, inside, unit_s, n, origin)

    def _picked(self, times: Dial, bysetpos: tuple[int, ...]) -> TimeList | None:
        """Return the times of day that BYSETPOS picks."""
        picked = positions(bysetpos, times.count())
        if not picked:
            self._never = _NO_POSITION
            return None
        return TimeList(tuple(times.nth(at) for at in picked))

    def next_from(self, local: int, steps: Steps) -> int | None:
        """First member at or after the local second."""
        local = max(local, self._start)
        if local > self._until or self._members is None:
            return None
        found = self._members.next_from(local, steps)
        return None if found is None or found > self._until else found

    def contains(self, local: int) -> bool:
        """Whether a local second is a member."""
        try:
            return self.next_from(local, Steps(2)) == local
        except OutOfSteps:
            return False

    def never_reason(self) -> str | None:
        """Reason why there is no member, where that is known."""
        if self._members is None:
            return self._never
        days = self._members.days
        if days.is_empty():
            picks = isinstance(self._members, PeriodPicks) and not self._members.nothing_allowed
            return _NO_POSITION if picks else "no day of the 400-year calendar cycle fulfils its day parts"
        try:
            first = self._members.next_from(self._start, Steps(_COUNT_STEPS))
        except OutOfSteps as out:
            return "its first slot would come after UNTIL" if out.reached > self._until else None
        if first is None:
            return "no period that INTERVAL selects before year 10000 has a day and time that fulfil its parts"
        return "its first slot would come after UNTIL" if first > self._until else None

    def ends(self) -> bool:
        """Whether the number of members is finite: COUNT or UNTIL bounds it, or there is none."""
        return self._members is None or self._bounded or self._members.days.is_empty()

    def pace(self) -> Pace:
        """Bounds of the distance between members."""
        return self._pace


def _pace_of_steps(inside: Times, unit_s: int, interval: int, origin: int) -> Pace:
    """Bounds of the distance between members of a rule with an INTERVAL that does not divide the day."""
    members = [inside.nth(index) for index in range(inside.count())] if inside.count() <= civil.DAY_S else []
    step_s = interval * unit_s
    gap = min([step_s + members[0] - members[-1], *(b - a for a, b in pairwise(members))])
    per_day = (civil.DAY_S // step_s + 1) * len(members)
    granule = gcd(civil.DAY_S, step_s, origin * unit_s, *members)
    return Pace(gap * SECOND_US, per_day, granule * SECOND_US, clock=WALL)

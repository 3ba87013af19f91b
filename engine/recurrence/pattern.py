"""What a wall-clock rule is made of: days and times of day, and how far its slots lie apart at least.

A pattern holds every slot of its rule and may hold more: phases of INTERVAL, BYSETPOS, COUNT, UNTIL, DTSTART and
exceptions only take slots away. So a bound that is proved on patterns holds for the schedule.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lodger.engine.recurrence import timeset
from lodger.engine.recurrence.civil import DAY_S, MAX_LOCAL, MIN_LOCAL
from lodger.engine.recurrence.cron.rule import CronRule
from lodger.engine.recurrence.grid import Grid
from lodger.engine.recurrence.once import OnceLocal
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.parts import UNIT_S, Freq
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.set_positions import SetPositions
from lodger.engine.recurrence.rule import LocalSequence
from lodger.engine.recurrence.schyntax.rule import SchyntaxRule


@dataclass(frozen=True, slots=True)
class Pattern:
    """Days × times that hold every slot of a rule.

    Attributes:
        days: bits of a year's days.
        times: bits of the seconds of a day.
        apart_s: no two slots of the rule lie closer, local seconds; 1 when the product says it better.
        most: greatest number of slots in a local day.
        named: years whose days are their own and not those of their kind.
        selected: the days that INTERVAL selects, when it selects some only; else None.
        cycle_years: years after which ``selected`` and the calendar repeat together.
        unit_s: length of the unit that INTERVAL steps through.
        stretch_s: any stretch of allowed times so long holds a slot; None when the times themselves are all slots.
        first: local second from which on it has slots.
        last: local second up to which it has all of them; below ``first`` when that is not known.
        chosen: whether BYSETPOS leaves only some of the days and times.
    """

    days: Callable[[int], int]
    times: int
    apart_s: int
    most: int
    named: tuple[int, int] | None = None
    selected: Callable[[int], int] | None = None
    cycle_years: int = 400
    unit_s: int = 1
    stretch_s: int | None = None
    first: int = MIN_LOCAL
    last: int = MAX_LOCAL
    chosen: bool = False

    @property
    def stepping(self) -> bool:
        """Whether the product holds times that one day never has together."""
        return self.apart_s > 1 or self.most < self.times.bit_count()


def patterns_of(local: LocalSequence) -> list[Pattern]:
    """Patterns of a wall-clock rule, its single dates aside."""
    if isinstance(local, CronRule):
        return [_of_grid(local.grid)]
    if isinstance(local, SchyntaxRule):
        return [_of_grid(group.grid) for group in local.groups]
    if isinstance(local, SetSequence):
        return of_rules(local.included)
    return []


def of_rules(rules: Iterable[RuleSequence]) -> list[Pattern]:
    """Patterns of RRULEs or EXRULEs."""
    found = []
    for rule in rules:
        pattern = _of_rule(rule)
        if pattern is not None:
            found.append(replace(pattern, first=rule.start, last=rule.until))
    return found


def dates_of(local: LocalSequence) -> tuple[int, ...]:
    """Local seconds that a rule names one by one."""
    if isinstance(local, OnceLocal):
        return (local.at,)
    return local.dates if isinstance(local, SetSequence) else ()


def _of_grid(grid: Grid) -> Pattern:
    times = timeset.product(grid.dial.hours, grid.dial.minutes, grid.dial.seconds)
    return Pattern(grid.days.of_year, times, 1, times.bit_count(), grid.days.named_span)


def _of_rule(rule: RuleSequence) -> Pattern | None:
    base = rule.base
    if base is None:
        return None
    filled, n = rule.filled, rule.filled.interval
    if isinstance(base, SetPositions):
        times = base.times.bits()
        # A day of UTC touches two days of the wall clock, and so two periods at most.
        most = min(times.bit_count(), 2 * len(filled.bysetpos))
        return Pattern(base.days.allowed.mask, times, 1, most, chosen=True)
    days = base.days
    assert isinstance(days, Days)
    inside = base.times.bits()
    between = base.times.last - base.times.first
    if isinstance(base.steps, ClockSteps):
        unit_s = UNIT_S[filled.freq]
        units, steady = DAY_S // unit_s, (DAY_S // unit_s) % n == 0
        times = 0
        for at in timeset.listed(base.steps.reachable()) if unit_s > 1 else ():
            times |= inside << at * unit_s
        if unit_s == 1:
            times = base.steps.reachable()
        if steady:
            return Pattern(days.allowed.mask, times, 1, times.bit_count())
        apart = min(timeset.smallest_gap(inside) or DAY_S * n, n * unit_s - between)
        most = min(times.bit_count(), (units // n + 1) * base.times.size)
        return Pattern(days.allowed.mask, times, apart, most, unit_s=unit_s, stretch_s=n * unit_s)
    step_days = n if filled.freq is Freq.DAILY else 1
    if filled.freq is Freq.WEEKLY and n > 1 and len(filled.byday) == 1:
        step_days = 7 * n
    apart = 1
    if step_days > 1:
        apart = min(timeset.smallest_gap(inside) or DAY_S * step_days, step_days * DAY_S - between)
    phase = days.phase
    if phase is None:
        return Pattern(days.allowed.mask, inside, apart, inside.bit_count())
    return Pattern(
        days.allowed.mask,
        inside,
        apart,
        inside.bit_count(),
        selected=days.mask,
        cycle_years=phase.years,
    )

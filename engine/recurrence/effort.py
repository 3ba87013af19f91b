"""What a question costs at most: counted by what is looked at, in microseconds on the machine that the figures come from.

The weights are bounds of what each kind of look has been measured to cost; ``bench/adversarial.py`` holds questions about drawn
schedules against them. A schedule is accepted when the sum, for its longest row of closed slots, stays within :data:`MOST_US`.
"""

from collections.abc import Iterable, Iterator, Sequence

from lodger.engine.recurrence.civil import CYCLE_DAYS
from lodger.engine.recurrence.cron.rule import CronRule
from lodger.engine.recurrence.grid import Grid
from lodger.engine.recurrence.parts import Reduced
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.leftover import SortedDays
from lodger.engine.recurrence.rrule.remainder import Remainder
from lodger.engine.recurrence.rrule.residues import Residues, Turning
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.set_positions import SetPositions
from lodger.engine.recurrence.rrule.unit_times import UnitTimes
from lodger.engine.recurrence.rule import LocalSequence, Recurrence
from lodger.engine.recurrence.schyntax.rule import SchyntaxRule
from lodger.engine.recurrence.union import Union
from lodger.engine.recurrence.window import Windows
from lodger.engine.recurrence.zoned import Zoned

#: A question may cost so much.
MOST_US = 1000
#: An interval or a single instant; a zone; a sequence of a wall-clock rule; the end of a window's day; its readings.
_PLAIN, _ZONE, _SEQUENCE, _MIDNIGHT, _READINGS = 2, 2, 3, 3, 2
#: Sorting the days of a year.
_YEAR = 15
#: A sequence whose days are known, one that has to find out the days of a year first, and what INTERVAL and BYSETPOS add.
_KNOWN, _FIRST, _PHASE, _POSITIONS = 5, 24, 10, 40
#: Listing the days of a year, of which most are allowed, because BYSETPOS counts them.
_LISTED = 80
#: Days of which centuries, or decades, may have none: two of the calendar's spans of 400 years are looked through, or many years.
_FAR = 60
#: So many sets of days of cron and Schyntax are asked without looking for their years first.
_FEW_GRIDS = 4


def first_us(rule: Recurrence, *, known: bool = False) -> int:
    """Asking a rule for the first time; ``known`` when the days of all kinds of year have been worked out."""
    if isinstance(rule, Union):
        return sum(first_us(each, known=known) for each in rule.rules)
    if not isinstance(rule, Zoned):
        return _PLAIN
    if isinstance(rule.local, SchyntaxRule):
        return _ZONE + _KNOWN * len(rule.local.groups)
    return _ZONE + max(_KNOWN, sum(_source_us(source, known=known) for source in _sources(rule.local)))


def make_ready(rules: Iterable[Recurrence]) -> None:
    """Look now for the years of rules of cron and Schyntax when they are many: one question asks them all."""
    grids = [grid for rule in rules for grid in _grids(rule)]
    if len(grids) > _FEW_GRIDS:
        for grid in grids:
            grid.days.warm()


def _grids(rule: Recurrence) -> list[Grid]:
    if isinstance(rule, Union):
        return [grid for each in rule.rules for grid in _grids(each)]
    local = rule.local if isinstance(rule, Zoned) else None
    if isinstance(local, SchyntaxRule):
        return [group.grid for group in local.groups]
    return [local.grid] if isinstance(local, CronRule) else []


def work_out(rule: Recurrence) -> None:
    """Work out the days of all kinds of year now, so that no question does."""
    if isinstance(rule, Union):
        for each in rule.rules:
            work_out(each)
    elif isinstance(rule, Zoned):
        for source in _sources(rule.local):
            days = source.days
            if isinstance(days, Days):
                days.allowed.total()


def _sources(local: LocalSequence) -> Iterator[UnitTimes | SetPositions]:
    """Sequences that one question asks."""
    if isinstance(local, RuleSequence):
        yield from [] if local.base is None else [local.base]
    elif isinstance(local, SetSequence) and not local.remainders:
        for rule in local.included:
            yield from _sources(rule)
    elif isinstance(local, SetSequence | Reduced):
        for remainder in local.remainders:
            stretch = max(remainder.stretches, key=lambda each: len(each.pieces), default=None)
            if stretch is not None and isinstance(stretch.whole, UnitTimes | SetPositions):
                yield stretch.whole
            for piece in () if stretch is None else stretch.pieces:
                yield piece.source


def _source_us(source: UnitTimes | SetPositions, *, known: bool) -> int:
    days, cost = source.days, _KNOWN if known else _FIRST
    if isinstance(source, SetPositions):
        first, after = source.bounds(0)
        cost += _POSITIONS + (_LISTED if after - first > 300 and source.allowed.total() * 4 > CYCLE_DAYS else 0)
    elif isinstance(source.steps, ClockSteps):
        cost += _PHASE
    if isinstance(days, SortedDays):
        return cost + _PHASE
    if isinstance(days, Days) and days.phase is not None:
        cost += _PHASE
        phase = days.phase
        if isinstance(phase, Residues) and phase.modulus <= CYCLE_DAYS:
            # Every week, or every day, has an allowed day: then the first selected ones do.
            dense = days.allowed.total() * 7 >= CYCLE_DAYS if len(phase.residues) >= 7 else False
            if not dense and days.allowed.total() < CYCLE_DAYS:
                cost += _FAR if phase.modulus >= 180 or days.allowed.total() * 12 < CYCLE_DAYS else 0
        cost += _FAR if isinstance(phase, Turning) and days.allowed.total() < CYCLE_DAYS else 0
    return cost


def rule_us(rule: Recurrence) -> int:
    """Asking a rule for its next or previous slot."""
    if isinstance(rule, Union):
        return sum(map(rule_us, rule.rules))
    if not isinstance(rule, Zoned):
        return _PLAIN
    return _ZONE + _SEQUENCE * _sequences(rule.local) + _YEAR * _sorted(rule.local)


def slot_us(schedule: Union) -> int:
    """Going from a slot of a schedule to the next one, rows of closed ones aside."""
    return sum(map(rule_us, schedule.rules)) + len(schedule.rules) * sum(map(window_us, schedule.exclusions))


def window_us(window: Windows) -> int:
    """Asking an exclusion up to when an instant is closed."""
    readings = _READINGS if window.readings is not None else 0
    return rule_us(window.opens) + readings + (_MIDNIGHT if window.whole_days else 0)


def walked_us(source: Recurrence, asked: Sequence[Windows], slots: int) -> int:
    """Going from closed slot to closed slot, so many, and finding one more."""
    first = first_us(source) + sum(first_us(each.opens) for each in asked)
    return first + slots * (rule_us(source) + sum(map(window_us, asked)))


def _sorted(local: LocalSequence) -> int:
    """How many sorts of days are told apart anew in each year that a row comes to."""
    remainders = local.remainders if isinstance(local, Reduced | SetSequence) else ()
    found = (each for remainder in remainders for each in remainder.stretches)
    return min(
        len(remainders), sum(any(isinstance(one.source.days, SortedDays) for one in each.pieces) for each in found)
    )


def _sequences(local: LocalSequence) -> int:
    if isinstance(local, SchyntaxRule):
        return len(local.groups)
    if isinstance(local, Reduced):
        return sum(map(_pieces, local.remainders))
    if isinstance(local, SetSequence):
        return sum(map(_pieces, local.remainders)) if local.remainders else max(1, len(local.included))
    return 1


def _pieces(remainder: Remainder) -> int:
    """Most sequences of one stretch; of what is asked for each slot a whole row may be closed."""
    return max((max(1, len(each.pieces)) * (1 + 60 * len(each.loose)) for each in remainder.stretches), default=1)

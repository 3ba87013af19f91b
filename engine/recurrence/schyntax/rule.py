"""A Schyntax schedule as a rule with its words."""

from functools import partial

from lodger.engine.recurrence.calendar.dial import ALL_HOURS, ALL_MINUTES, ALL_SECONDS, Dial
from lodger.engine.recurrence.calendar.grid import Grid
from lodger.engine.recurrence.groups import Group, GroupedRule
from lodger.engine.recurrence.schyntax.days import Arguments, group_days, week_set
from lodger.engine.recurrence.schyntax.model import Argument, Date, Expression, Program, Unit
from lodger.engine.recurrence.schyntax.sets import clock_set, folded
from lodger.engine.recurrence.words import MONTHS, WEEKDAYS, joined, listed, ordinal, spoken, timed

_COUNTED = {Unit.DAYS_OF_MONTH: "of the month", Unit.DAYS_OF_YEAR: "of the year", Unit.DATES: ""}


def _value(value: int | Date | None) -> str:
    """Return a number or date of an argument in words."""
    if isinstance(value, Date):
        if value.year is None:
            return f"{MONTHS[value.month]} {value.day}"
        return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
    assert value is not None
    if value > 0:
        return f"day {value}"
    return "the last day" if value == -1 else f"the {ordinal(-value)} last day"


def _argument(argument: Argument) -> str:
    """Return an argument in words."""
    span = argument.span
    if span.start is None:
        return (
            "every day" if argument.interval in (None, 1) else f"every {ordinal(argument.interval)} day from the first"
        )
    start = _value(span.start)
    end = None if span.end is None else _value(span.end)
    till = "" if end is None else f" up to but not including {end}" if span.half_open else f" through {end}"
    if argument.interval is None:
        return start + till
    step = "every day" if argument.interval == 1 else f"every {ordinal(argument.interval)} day"
    return f"{step} from {start}{till}"


def _days(unit: Unit, arguments: tuple[Argument, ...]) -> str:
    """Return the days of arguments in words."""
    included = [_argument(argument) for argument in arguments if not argument.excluded]
    excluded = [_argument(argument) for argument in arguments if argument.excluded]
    ending = f" {_COUNTED[unit]}" if _COUNTED[unit] else ""
    said = f"on {joined(included, 'or')}{ending}" if included else ""
    if excluded:
        said += f"{' but ' if included else ''}not on {joined(excluded, 'or')}{ending}"
    return said


def group_in_words(arguments: Arguments, dial: Dial, *, recurring: bool) -> str:
    """Return when a group fires, in words without capital letter."""
    said = "at no time" if dial.is_empty() else spoken(dial, recurring=recurring)
    filters = []
    if Unit.DAYS_OF_WEEK in arguments:
        week = week_set(arguments[Unit.DAYS_OF_WEEK])
        if week != 0b1111111:
            filters.append(f"on {listed(week, WEEKDAYS)}" if week else "on no day of the week")
    filters += [_days(unit, arguments[unit]) for unit in _COUNTED if unit in arguments]
    return timed(said, ", and only ".join(filters) or "every day")


def compiled(program: Program) -> GroupedRule:
    """Return the rule of a parsed schedule, its arguments folded into sets."""
    return GroupedRule(_group(expressions) for expressions in program)


def _group(expressions: tuple[Expression, ...]) -> Group:
    """Return the days and times of day that expressions in one pair of braces mean."""
    arguments: Arguments = {}
    for expression in expressions:
        arguments[expression.unit] = arguments.get(expression.unit, ()) + expression.arguments
    for unit in arguments:
        # The same argument twice says nothing new; positions do not matter any more.
        arguments[unit] = tuple(
            {(e.span.start, e.span.end, e.span.half_open, e.excluded, e.interval): e for e in arguments[unit]}.values()
        )
    sets = []
    finest = False
    for unit, everything in ((Unit.SECONDS, ALL_SECONDS), (Unit.MINUTES, ALL_MINUTES), (Unit.HOURS, ALL_HOURS)):
        if unit in arguments:
            sets.append(folded(arguments[unit], partial(clock_set, unit=unit), everything))
            finest = True
        else:
            sets.append(everything if finest else 1)
    dial = Dial(sets[2], sets[1], sets[0])
    hours = arguments.get(Unit.HOURS)
    if hours is None:
        recurring = finest
    else:
        included = [argument for argument in hours if not argument.excluded]
        recurring = not included or any(argument.is_wildcard for argument in included)
    words = partial(group_in_words, arguments, dial, recurring=recurring)
    return Group(Grid(group_days(arguments), dial), words, recurring)

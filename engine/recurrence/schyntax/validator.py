"""Checks beyond the grammar: values in range, dates that exist."""

from lodger.engine.recurrence.calendar.civil import days_in_month
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.schyntax.model import (
    FIRST_YEAR,
    FROM_END,
    LAST_YEAR,
    SPANS,
    Argument,
    Date,
    Program,
    Range,
    Unit,
)

_LEAP_YEAR = 2000


def validate(program: Program) -> None:
    """Raise RuleInvalid for the first mistake."""
    if not program.groups:
        raise RuleInvalid(
            "schyntax_empty",
            "the schedule has no expression",
            why="A schedule has at least one expression.",
            fix="Write for example min(*%5).",
            index=0,
        )
    # Groups come before loose expressions, as in the reference: the first error reported is the same.
    for group in program.groups:
        for expression in group:
            for argument in expression.arguments:
                _argument(expression.unit, argument)


def _wrong(what: str, why: str, index: int) -> RuleInvalid:
    return RuleInvalid("schyntax_bad_value", what, why=why, fix="Write a valid value for the expression.", index=index)


def _argument(unit: Unit, argument: Argument) -> None:
    if argument.interval == 0:
        raise _wrong("the interval %0 is not positive", f"For all {unit} write *.", argument.percent_index)
    if argument.is_wildcard:
        if argument.excluded and argument.interval is None:
            raise _wrong("!* excludes everything", "An excluded wildcard needs an interval.", argument.index)
    elif unit is Unit.DATES:
        _dates(argument.span)
    else:
        _numbers(unit, argument.span)
    if argument.interval is not None and unit is not Unit.DATES:
        _number(unit, argument.interval, argument.interval_index)


def _number(unit: Unit, value: int | Date | None, index: int) -> None:
    low, high = SPANS[unit]
    assert isinstance(value, int)
    if low <= value <= high or (unit in FROM_END and low <= -value <= high):
        return
    negative = f" or {-high} to {-low}" if unit in FROM_END else ""
    raise _wrong(f"{unit} cannot be {value}", f"The values of {unit} are {low} to {high}{negative}.", index)


def _numbers(unit: Unit, span: Range) -> None:
    _number(unit, span.start, span.index)
    if span.end is not None:
        _number(unit, span.end, span.end_index)
    _not_hollow(span)


def _not_hollow(span: Range) -> None:
    if span.half_open and span.start == span.end:
        raise _wrong("the range is empty", "A half-open range with equal ends has no value.", span.index)


def _dates(span: Range) -> None:
    _date(span.start, span.index)
    if span.end is None:
        return
    _date(span.end, span.end_index)
    _not_hollow(span)
    start, end = span.start, span.end
    assert isinstance(start, Date)
    assert isinstance(end, Date)
    if (start.year is None) != (end.year is None):
        raise _wrong("only one end of the range has a year", "Give a year for both dates or for none.", span.index)
    if start.year is None or end.year is None:
        return
    if (start.year, start.month, start.day) > (end.year, end.month, end.day):
        raise _wrong(
            "the range ends before it starts",
            "A range of dates with years cannot wrap around the end of a year.",
            span.index,
        )


def _date(value: int | Date | None, index: int) -> None:
    assert isinstance(value, Date)
    if value.year is not None and not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise _wrong(f"year {value.year} is out of range", f"Years are {FIRST_YEAR} to {LAST_YEAR}.", index)
    if not 1 <= value.month <= 12:
        raise _wrong(f"month {value.month} does not exist", "A date is month/day or year/month/day.", index)
    length = days_in_month(_LEAP_YEAR if value.year is None else value.year, value.month)
    if not 1 <= value.day <= length:
        raise _wrong(f"the month has no day {value.day}", f"Its days are 1 to {length}.", index)

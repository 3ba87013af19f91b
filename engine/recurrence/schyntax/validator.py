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
        raise RuleInvalid("schyntax_empty", index=0)
    # Groups come before loose expressions, as in the reference: the first error reported is the same.
    for group in program.groups:
        for expression in group:
            for argument in expression.arguments:
                _argument(expression.unit, argument)


def _argument(unit: Unit, argument: Argument) -> None:
    """Check one argument."""
    if argument.interval == 0:
        raise RuleInvalid("schyntax_bad_value.interval", unit=unit, index=argument.percent_index)
    if argument.is_wildcard:
        if argument.excluded and argument.interval is None:
            raise RuleInvalid("schyntax_bad_value.nothing", index=argument.index)
    elif unit is Unit.DATES:
        _dates(argument.span)
    else:
        _numbers(unit, argument.span)
    if argument.interval is not None and unit is not Unit.DATES:
        _number(unit, argument.interval, argument.interval_index)


def _number(unit: Unit, value: int | Date | None, index: int) -> None:
    """Check that a number is in the range of its unit."""
    low, high = SPANS[unit]
    assert isinstance(value, int)
    if low <= value <= high or (unit in FROM_END and low <= -value <= high):
        return
    negative = f" or {-high} to {-low}" if unit in FROM_END else ""
    raise RuleInvalid("schyntax_bad_value", unit=unit, value=value, low=low, high=high, negative=negative, index=index)


def _numbers(unit: Unit, span: Range) -> None:
    """Check a range of numbers."""
    _number(unit, span.start, span.index)
    if span.end is not None:
        _number(unit, span.end, span.end_index)
    _not_hollow(span)


def _not_hollow(span: Range) -> None:
    """Refuse a range that contains no value."""
    if span.half_open and span.start == span.end:
        raise RuleInvalid("schyntax_bad_value.empty", index=span.index)


def _dates(span: Range) -> None:
    """Check a range of dates."""
    _date(span.start, span.index)
    if span.end is None:
        return
    _date(span.end, span.end_index)
    _not_hollow(span)
    start, end = span.start, span.end
    assert isinstance(start, Date)
    assert isinstance(end, Date)
    if (start.year is None) != (end.year is None):
        raise RuleInvalid("schyntax_bad_value.year_missing", index=span.index)
    if start.year is None or end.year is None:
        return
    if (start.year, start.month, start.day) > (end.year, end.month, end.day):
        raise RuleInvalid("schyntax_bad_value.backwards", index=span.index)


def _date(value: int | Date | None, index: int) -> None:
    """Check one date."""
    assert isinstance(value, Date)
    if value.year is not None and not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise RuleInvalid("schyntax_bad_value.year", year=value.year, first=FIRST_YEAR, last=LAST_YEAR, index=index)
    if not 1 <= value.month <= 12:
        raise RuleInvalid("schyntax_bad_value.month", month=value.month, index=index)
    length = days_in_month(_LEAP_YEAR if value.year is None else value.year, value.month)
    if not 1 <= value.day <= length:
        raise RuleInvalid("schyntax_bad_value.day", day=value.day, length=length, index=index)

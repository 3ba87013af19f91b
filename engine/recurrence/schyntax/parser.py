"""Schyntax text to its model, by the grammar of the spec.

::

    program  = [ (group | expression) { [","] (group | expression) } [","] ]
    group    = "{" { expression [","] } "}"
    expression = NAME "(" argument { [","] argument } [","] ")"
    argument = ["!"] ( "*" | value [ (".." | "..<") value ] ) [ "%" NUMBER ]
    value    = NUMBER | NEGATIVE | DAY | NUMBER "/" NUMBER [ "/" NUMBER ]

What the grammar lets through is checked afterwards (:mod:`lodger.engine.recurrence.schyntax.parser`), in the order of the reference
implementation, so that the position of an error is the same as there.
"""

from functools import partial

from lodger.engine.recurrence.calendar.civil import days_in_month
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.schyntax.lexer import Sort, Token, number, tokens
from lodger.engine.recurrence.schyntax.model import (
    FIRST_YEAR,
    FROM_END,
    LAST_YEAR,
    SPANS,
    Argument,
    Date,
    Expression,
    Program,
    Range,
    Unit,
)

_LEAP_YEAR = 2000


def validate(program: Program) -> None:
    """Check the values and ranges of a schedule's arguments; raise RuleInvalid for the first mistake."""
    if not program:
        raise RuleInvalid("schyntax_empty", index=0)
    # Groups come before loose expressions, as in the reference: the first error reported is the same.
    for group in program:
        for expression in group:
            for argument in expression.arguments:
                _argument(expression.unit, argument)


def _argument(unit: Unit, argument: Argument) -> None:
    """Check the values, the range and the interval of one argument."""
    if argument.interval == 0:
        raise RuleInvalid("schyntax_bad_value.interval", unit=unit, index=argument.percent_index)
    if argument.is_wildcard:
        if argument.excluded and argument.interval is None:
            raise RuleInvalid("schyntax_bad_value.nothing", index=argument.index)
    else:
        _span(unit, argument.span)
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


def _span(unit: Unit, span: Range) -> None:
    """Check that both ends of a range are values of the unit and fit together."""
    check = _date if unit is Unit.DATES else partial(_number, unit)
    check(span.start, span.index)
    if span.end is None:
        return
    check(span.end, span.end_index)
    start, end = span.start, span.end
    if span.half_open and start == end:
        raise RuleInvalid("schyntax_bad_value.empty", index=span.index)
    if isinstance(start, Date) and isinstance(end, Date):
        if (start.year is None) != (end.year is None):
            raise RuleInvalid("schyntax_bad_value.year_missing", index=span.index)
        if start.year and end.year and (start.year, start.month, start.day) > (end.year, end.month, end.day):
            raise RuleInvalid("schyntax_bad_value.backwards", index=span.index)


def _date(value: int | Date | None, index: int) -> None:
    """Check that the calendar has a date."""
    assert isinstance(value, Date)
    if value.year is not None and not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise RuleInvalid("schyntax_bad_value.year", year=value.year, first=FIRST_YEAR, last=LAST_YEAR, index=index)
    if not 1 <= value.month <= 12:
        raise RuleInvalid("schyntax_bad_value.month", month=value.month, index=index)
    length = days_in_month(_LEAP_YEAR if value.year is None else value.year, value.month)
    if not 1 <= value.day <= length:
        raise RuleInvalid("schyntax_bad_value.day", day=value.day, length=length, index=index)


MAX_GROUPS = 64


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._place = 0

    def next_is(self, *sorts: Sort) -> bool:
        """Whether the next token is of one of these sorts."""
        return self._tokens[self._place].sort in sorts

    def peek(self) -> Token:
        """Return the next token without reading it."""
        return self._tokens[self._place]

    def take(self, *sorts: Sort) -> Token:
        """Read a token of one of these sorts."""
        token = self._tokens[self._place]
        if token.sort not in sorts:
            raise self.unexpected(*sorts)
        # The last token is END and is never passed.
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def unexpected(self, *sorts: Sort) -> RuleInvalid:
        """Return the error of a token that may not stand here."""
        token = self.peek()
        wanted = " or ".join(sort.value for sort in sorts)
        if token.sort is Sort.END:
            return RuleInvalid("schyntax_unexpected.end", wanted=wanted, index=token.at)
        return RuleInvalid("schyntax_unexpected", text=token.text[:24], wanted=wanted, index=token.at)

    def skip(self, sort: Sort) -> bool:
        """Read the next token if it is of a sort; return whether it was."""
        found = self.next_is(sort)
        self._place += found
        return found

    def value(self, unit: Unit | None) -> int:
        """Read a number, or the name of a weekday, as a value of a unit."""
        token = self.peek()
        if token.sort is Sort.NEGATIVE and unit not in FROM_END:
            raise RuleInvalid("schyntax_negative", text=token.text[:24], index=token.at)
        others = (Sort.DAY,) if unit is Unit.DAYS_OF_WEEK else (Sort.NEGATIVE,) if unit in FROM_END else ()
        return number(self.take(Sort.NUMBER, *others))

    def date(self) -> Date:
        """Read a date, ``m/d`` or ``yyyy/m/d``."""
        first = number(self.take(Sort.NUMBER))
        self.take(Sort.SLASH)
        second = number(self.take(Sort.NUMBER))
        return (
            Date(first, second, number(self.take(Sort.NUMBER))) if self.skip(Sort.SLASH) else Date(None, first, second)
        )

    def span(self, unit: Unit) -> Range:
        """Read a value or a range."""
        index = self.peek().at
        start = self.date() if unit is Unit.DATES else self.value(unit)
        half_open = self.next_is(Sort.HALF_OPEN)
        if not (self.skip(Sort.HALF_OPEN) or self.skip(Sort.RANGE)):
            return Range(start, index=index)
        end_index = self.peek().at
        end = self.date() if unit is Unit.DATES else self.value(unit)
        return Range(start, end, half_open, index, end_index)

    def argument(self, unit: Unit) -> Argument:
        """Read one argument of an expression."""
        index = self.peek().at
        excluded, star = self.skip(Sort.NOT), self.peek()
        span = Range(None, index=star.at) if self.skip(Sort.STAR) else self.span(unit)
        percent = self.peek()
        if not self.skip(Sort.PERCENT):
            return Argument(span, excluded, index=index)
        interval_index = self.peek().at
        return Argument(span, excluded, self.value(None), index, percent.at, interval_index)

    def expression(self) -> Expression:
        """Read one expression, such as ``hours(9..17)``."""
        unit = self.take(Sort.NAME).value
        assert isinstance(unit, Unit)
        self.take(Sort.OPEN)
        arguments = []
        while True:
            arguments.append(self.argument(unit))
            self.skip(Sort.COMMA)
            if self.skip(Sort.CLOSE):
                return Expression(unit, tuple(arguments))

    def group(self) -> tuple[Expression, ...]:
        """Read a group of expressions in braces."""
        self.take(Sort.OPEN_GROUP)
        found = []
        while not self.skip(Sort.CLOSE_GROUP):
            found.append(self.expression())
            self.skip(Sort.COMMA)
        return tuple(found)

    def program(self) -> Program:
        """Read the whole text of a schedule."""
        loose: list[Expression] = []
        groups: list[tuple[Expression, ...]] = []
        while not self.next_is(Sort.END):
            if self.next_is(Sort.OPEN_GROUP):
                index = self.peek().at
                groups.append(self.group())
                if len(groups) > MAX_GROUPS:
                    raise RuleInvalid("schyntax_too_many_groups", maximum=MAX_GROUPS, index=index)
            elif self.next_is(Sort.NAME):
                loose.append(self.expression())
            else:
                raise self.unexpected(Sort.NAME, Sort.OPEN_GROUP)
            self.skip(Sort.COMMA)
        return tuple(group for group in (*groups, tuple(loose)) if group)


def read(text: str) -> Program:
    """Parse and validate a Schyntax schedule.

    Raises:
        RuleInvalid: with the 0-based index of the mistake, the same as the official test suite expects.
    """
    program = _Reader(text).program()
    validate(program)
    return program

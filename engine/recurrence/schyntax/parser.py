"""Schyntax text to its model, by the grammar of the spec.

::

    program  = [ (group | expression) { [","] (group | expression) } [","] ]
    group    = "{" { expression [","] } "}"
    expression = NAME "(" argument { [","] argument } [","] ")"
    argument = ["!"] ( "*" | value [ (".." | "..<") value ] ) [ "%" NUMBER ]
    value    = NUMBER | NEGATIVE | DAY | NUMBER "/" NUMBER [ "/" NUMBER ]

What the grammar lets through is checked afterwards (:mod:`lodger.engine.recurrence.schyntax.validator`), in the order of the reference
implementation, so that the position of an error is the same as there.
"""

from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.schyntax.lexer import Sort, Token, number, tokens
from lodger.engine.recurrence.schyntax.model import FROM_END, Argument, Date, Expression, Program, Range, Unit
from lodger.engine.recurrence.schyntax.validator import validate

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

    def value(self, unit: Unit | None) -> int:
        """Read a value of a unit."""
        if self.next_is(Sort.NEGATIVE):
            token = self.peek()
            if unit not in FROM_END:
                raise RuleInvalid("schyntax_negative", text=token.text[:24], index=token.at)
            return number(self.take(Sort.NEGATIVE))
        if self.next_is(Sort.DAY) and unit is Unit.DAYS_OF_WEEK:
            return number(self.take(Sort.DAY))
        if unit is Unit.DAYS_OF_WEEK:
            return number(self.take(Sort.NUMBER, Sort.DAY))
        if unit in FROM_END:
            return number(self.take(Sort.NUMBER, Sort.NEGATIVE))
        return number(self.take(Sort.NUMBER))

    def date(self) -> Date:
        """Read a date."""
        first = number(self.take(Sort.NUMBER))
        self.take(Sort.SLASH)
        second = number(self.take(Sort.NUMBER))
        if not self.next_is(Sort.SLASH):
            return Date(None, first, second)
        self.take(Sort.SLASH)
        return Date(first, second, number(self.take(Sort.NUMBER)))

    def span(self, unit: Unit) -> Range:
        """Read a value or a range."""
        index = self.peek().at
        start = self.date() if unit is Unit.DATES else self.value(unit)
        if not self.next_is(Sort.RANGE, Sort.HALF_OPEN):
            return Range(start, index=index)
        half_open = self.take(Sort.RANGE, Sort.HALF_OPEN).sort is Sort.HALF_OPEN
        end_index = self.peek().at
        end = self.date() if unit is Unit.DATES else self.value(unit)
        return Range(start, end, half_open, index, end_index)

    def argument(self, unit: Unit) -> Argument:
        """Read one argument of an expression."""
        index = self.peek().at
        excluded = self.next_is(Sort.NOT)
        if excluded:
            self.take(Sort.NOT)
        if self.next_is(Sort.STAR):
            span = Range(None, index=self.take(Sort.STAR).at)
        else:
            span = self.span(unit)
        if not self.next_is(Sort.PERCENT):
            return Argument(span, excluded, index=index)
        percent = self.take(Sort.PERCENT)
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
            if self.next_is(Sort.COMMA):
                self.take(Sort.COMMA)
            if self.next_is(Sort.CLOSE):
                break
        self.take(Sort.CLOSE)
        return Expression(unit, tuple(arguments))

    def group(self) -> tuple[Expression, ...]:
        """Read a group of expressions in braces."""
        self.take(Sort.OPEN_GROUP)
        found = []
        while not self.next_is(Sort.CLOSE_GROUP):
            found.append(self.expression())
            if self.next_is(Sort.COMMA):
                self.take(Sort.COMMA)
        self.take(Sort.CLOSE_GROUP)
        return tuple(found)

    def program(self) -> Program:
        """Read the whole text."""
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
            if self.next_is(Sort.COMMA):
                self.take(Sort.COMMA)
        return Program(tuple(group for group in (*groups, tuple(loose)) if group))


def read(text: str) -> Program:
    """Parse and validate a Schyntax schedule.

    Raises:
        RuleInvalid: with the 0-based index of the mistake, the same as the official test suite expects.
    """
    program = _Reader(text).program()
    validate(program)
    return program

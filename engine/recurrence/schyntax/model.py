"""Syntax tree of a Schyntax text: groups of expressions with arguments."""

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """The calendar unit of an expression."""

    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"
    DAYS_OF_WEEK = "daysOfWeek"
    DAYS_OF_MONTH = "daysOfMonth"
    DAYS_OF_YEAR = "daysOfYear"
    DATES = "dates"


#: Smallest and largest number of each unit; the day units also take the negatives of theirs.
SPANS = {
    Unit.SECONDS: (0, 59),
    Unit.MINUTES: (0, 59),
    Unit.HOURS: (0, 23),
    Unit.DAYS_OF_WEEK: (1, 7),
    Unit.DAYS_OF_MONTH: (1, 31),
    Unit.DAYS_OF_YEAR: (1, 366),
}
FROM_END = (Unit.DAYS_OF_MONTH, Unit.DAYS_OF_YEAR)
FIRST_YEAR, LAST_YEAR = 1900, 2200


@dataclass(frozen=True, slots=True)
class Date:
    """``m/d`` (year None) or ``yyyy/m/d``."""

    year: int | None
    month: int
    day: int


@dataclass(frozen=True, slots=True)
class Range:
    """A value or a range of an argument.

    Attributes:
        start: number or date; None for the wildcard.
        end: None when there is no range.
        half_open: the end itself is left out.
        index: position of the start in the text.
        end_index: position of the end.
    """

    start: int | Date | None
    end: int | Date | None = None
    half_open: bool = False
    index: int = 0
    end_index: int = 0


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an expression; positions are those in the text.

    Attributes:
        span: the values, the wildcard when its start is None.
        excluded: preceded by ``!``.
        interval: after ``%``; None without.
        index: where the argument begins (at its ``!``).
        percent_index: where the ``%`` stands.
        interval_index: where its number stands.
    """

    span: Range
    excluded: bool = False
    interval: int | None = None
    index: int = 0
    percent_index: int = 0
    interval_index: int = 0

    @property
    def is_wildcard(self) -> bool:
        """Whether the argument is ``*``."""
        return self.span.start is None


@dataclass(frozen=True, slots=True)
class Expression:
    """``name(argument, ...)``."""

    unit: Unit
    arguments: tuple[Argument, ...]


#: The groups in braces, then the loose expressions as one more; none is empty.
Program = tuple[tuple[Expression, ...], ...]

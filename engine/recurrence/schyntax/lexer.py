"""Schyntax text to tokens, each with its 0-based position. Linear; ASCII only, as the language is."""

import re
from enum import StrEnum
from typing import NamedTuple

from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.schyntax.model import Unit


class Sort(StrEnum):
    """Sorts of token, named as errors name them."""

    NAME = "an expression name"
    DAY = "a day name"
    NUMBER = "a number"
    NEGATIVE = "a negative number"
    HALF_OPEN = "..<"
    RANGE = ".."
    PERCENT = "%"
    NOT = "!"
    STAR = "*"
    SLASH = "/"
    COMMA = ","
    OPEN = "("
    CLOSE = ")"
    OPEN_GROUP = "{"
    CLOSE_GROUP = "}"
    END = "the end"
    UNKNOWN = "text that Schyntax does not know"


class Token(NamedTuple):
    """A token: sort, text as written, value (unit, weekday 1 to 7, number), 0-based position."""

    sort: Sort
    text: str
    value: int | Unit | None
    at: int


_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9]+)|(?P<negative>-[0-9]+)"
    r"|(?P<sign>\.\.<|\.\.|[%!*/,(){}])"
)
_UNIT_NAMES = {
    Unit.SECONDS: "s sec second seconds secondofminute secondsofminute",
    Unit.MINUTES: "m min minute minutes minuteofhour minutesofhour",
    Unit.HOURS: "h hour hours hourofday hoursofday",
    Unit.DAYS_OF_WEEK: "day days dow dayofweek daysofweek",
    Unit.DAYS_OF_MONTH: "dom dayofmonth daysofmonth",
    Unit.DAYS_OF_YEAR: "doy dayofyear daysofyear",
    Unit.DATES: "date dates",
}
UNITS = {name: unit for unit, names in _UNIT_NAMES.items() for name in names.split()}
_DAY_NAMES = (
    "su sun sunday",
    "mo mon monday",
    "tu tue tues tuesday",
    "we wed wednesday",
    "th thu thur thurs thursday",
    "fr fri friday",
    "sa sat saturday",
)
DAYS = {name: number for number, names in enumerate(_DAY_NAMES, 1) for name in names.split()}
_LARGEST = 2**31 - 1


def _word(text: str, index: int) -> Token:
    """Return the token of a word, such as a unit or a weekday; UNKNOWN for any other."""
    name = text.lower()
    if name in UNITS:
        return Token(Sort.NAME, text, UNITS[name], index)
    if name in DAYS:
        return Token(Sort.DAY, text, DAYS[name], index)
    return Token(Sort.UNKNOWN, text, None, index)


def tokens(text: str) -> list[Token]:
    """Return all tokens; the last one is END, or UNKNOWN at the first character that begins no token."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            found.append(Token(Sort.UNKNOWN, text[at], None, at))
            return found
        kind, piece = match.lastgroup, match[0]
        if kind == "word":
            found.append(_word(piece, at))
        elif kind == "sign":
            found.append(Token(Sort(piece), piece, None, at))
        elif kind != "space":
            sort = Sort.NUMBER if kind == "number" else Sort.NEGATIVE
            # Beyond 32 bits the value is never used: it only has to stay refused without costing a long
            # conversion.
            is_long = len(piece.lstrip("-0")) > 10
            found.append(Token(sort, piece, _LARGEST + 1 if is_long else int(piece), at))
        at = match.end()
    found.append(Token(Sort.END, "", None, at))
    return found


def number(token: Token) -> int:
    """Value of a number token."""
    value = token.value
    if not isinstance(value, int) or abs(value) > _LARGEST:
        raise RuleInvalid("schyntax_number_too_large", text=token.text[:24], maximum=_LARGEST, index=token.at)
    return value

"""The kinds of column values: their Python type, wire form and parsing.

A *canonical* value is what evaluator, journal and commit compare: int, float, Decimal, bool, str, aware datetime, date,
bytes, or JSON. Kinds go by the column's type, never by the value: a 64-bit column is text for the script even for 7.
"""

import datetime as dt
import re
import uuid
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from lodger.engine.core import strict_json
from lodger.engine.core.refusal import bad_request


class Kind(StrEnum):
    """Kind of a column's values, as the script's types name it."""

    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOL = "bool"
    TEXT = "text"
    INSTANT = "instant"
    DATE = "date"
    UUID = "uuid"
    JSON = "json"
    BYTES = "bytes"


#: Kinds with an order; JSON has none, and of bytes only equality is asked.
ORDERED = frozenset(Kind) - {Kind.JSON, Kind.BYTES}
NUMERIC = frozenset({Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DECIMAL})
#: Kinds of keys whose text is the same whoever writes it: Lodger, a platform, a trigger.
KEYED = frozenset({Kind.INT, Kind.BIGINT, Kind.TEXT, Kind.UUID, Kind.DATE})
INT64 = 2**63
#: Decimals are worked on with so many digits that nothing a column holds is ever rounded.
EXACT = Context(prec=160)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DECIMAL = re.compile(r"[+-]?\d{1,60}(\.\d{1,60})?", re.ASCII)
_BIGINT = re.compile(r"-?\d{1,19}", re.ASCII)


def read(kind: Kind, value: Any, name: str) -> Any:
    """Return the canonical value of a script's value for a column; None stays None.

    Args:
        kind: the column's.
        value: parsed JSON.
        name: the column, for the message.

    Raises:
        CallRefused: ``bad_request``: another type, a number that does not fit, no such date.
    """
    if value is None:
        return None
    reader, words = _FORMS[kind]
    made = reader(value)
    if made is None:
        raise bad_request(f"{name} takes {words}")
    return made


def show(kind: Kind, value: Any) -> Any:
    """Return the wire form of a canonical value.

    Raises:
        CallRefused: ``bad_request``: an integer that JavaScript cannot represent, in a column of kind ``int``.
    """
    if value is None:
        return None
    if kind is Kind.BIGINT or kind is Kind.DECIMAL:
        return format(value, "f") if isinstance(value, Decimal) else str(value)
    if kind is Kind.INSTANT:
        return strict_json.tag_instant(value)
    if kind is Kind.DATE:
        return value.isoformat()
    if kind is Kind.BYTES:
        return strict_json.tag_bytes(value)
    if kind is Kind.INT and abs(value) > strict_json.SAFE_INTEGER:
        raise bad_request("a number in this column exceeds the range of JavaScript")
    if kind is Kind.FLOAT and value - value != 0:
        return str(value)
    return value


def plus(one: Any, other: Any) -> Any:
    """Add two numbers of one kind, decimals exactly."""
    return EXACT.add(one, other) if isinstance(other, Decimal) else one + other


def _int(value: Any) -> int | None:
    """Return a whole number that JavaScript holds exactly; None for other values."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= strict_json.SAFE_INTEGER
    return value if whole else None


def _bigint(value: Any) -> int | None:
    """Return a whole number of 64 bits; None for other values."""
    if isinstance(value, str) and _BIGINT.fullmatch(value):
        value = int(value)
        return value if -INT64 <= value < INT64 else None
    return _int(value)


def _float(value: Any) -> float | None:
    """Return a script's number as a double; None for other values."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number else None


def _decimal(value: Any) -> Decimal | None:
    """Return a decimal number from a text or a number; None for other values."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return Decimal(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            made = Decimal(repr(value))
        except InvalidOperation:
            return None
        return made if -60 < made.adjusted() < 60 else None
    return None


def _date(value: Any) -> dt.date | None:
    """Return a date from its text; None for other values."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    try:
        return dt.date.fromisoformat(value)
    except ValueError:
        return None


def _uuid(value: Any) -> str | None:
    """Return a UUID's canonical text; None for other values."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        return str(uuid.UUID(value))
    except ValueError:
        return None


#: How a script's value is read, and what is said about the values that are taken.
_FORMS: dict[Kind, tuple[Callable[[Any], Any], str]] = {
    Kind.INT: (_int, "a whole number"),
    Kind.BIGINT: (_bigint, "a whole number of 64 bits, as text"),
    Kind.FLOAT: (_float, "a number"),
    Kind.DECIMAL: (_decimal, "a decimal number, as text such as 12.50"),
    Kind.BOOL: (lambda value: value if isinstance(value, bool) else None, "true or false"),
    Kind.TEXT: (lambda value: value if isinstance(value, str) else None, "text"),
    Kind.INSTANT: (strict_json.read_instant, "a Date or an Instant"),
    Kind.DATE: (_date, "a date such as 2026-11-21"),
    Kind.UUID: (_uuid, "a UUID"),
    Kind.JSON: (strict_json.normal, "a JSON value"),
    Kind.BYTES: (strict_json.read_bytes, "a Uint8Array"),
}

"""Parsing of command-line input: JSON and instants."""

import json
from datetime import datetime
from typing import Any

from lodger.engine.core.errors import Usage


def instant(name: str, given: str) -> datetime:
    """Read an instant: RFC 3339 with a zone, ``now``, or a duration from now, such as ``-2h`` or ``+30m``.

    Raises:
        Usage: instant_unreadable.
    """
    from lodger.engine.core.clock import SystemClock, from_us

    text = given.strip()
    now_us = SystemClock().now_us()
    try:
        if text == "now":
            return from_us(now_us)
        if text[:1] in {"+", "-"}:
            from lodger.engine.recurrence.duration import parse_duration

            return from_us(now_us + (-1 if text[0] == "-" else 1) * parse_duration(text[1:]))
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        found = None
    if found is None or found.tzinfo is None:
        raise Usage("instant_unreadable", name=name, given=given)
    return found


def value(name: str, given: str | None) -> Any:
    """Read an option that is JSON text.

    Raises:
        Usage: it is not JSON.
    """
    if given is None:
        return None
    try:
        return json.loads(given, parse_constant=_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise Usage("not_json", name=name, reason=error) from None


def _constant(name: str) -> None:
    """Refuse NaN and Infinity."""
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    """Return the number of a JSON text; raise ValueError if a double cannot hold it."""
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]} is larger than the largest number")
    return number

"""Parsing of command-line input: JSON and instants."""

from datetime import datetime
from typing import Any

from lodger.engine.core.errors import Usage
from lodger.sandbox import prescan


def instant(name: str, given: str, *, positional: bool = False) -> datetime:
    """Read an instant: RFC 3339 with a zone, ``now``, or a duration from now, such as ``-2h`` or ``+30m``.

    Args:
        name: the option; it is not written before a positional argument.

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
        if positional:
            raise Usage("instant_unreadable.argument", given=given)
        raise Usage("instant_unreadable", name=name, given=given)
    return found


def ago(name: str, given: str) -> datetime:
    """Return the instant that lies a length of time, such as ``7d``, before now.

    Raises:
        Usage: instant_unreadable.
    """
    from lodger.engine.core.clock import SystemClock, from_us
    from lodger.engine.recurrence.duration import parse_duration

    try:
        return from_us(SystemClock().now_us() - parse_duration(given))
    except (ValueError, OverflowError):
        raise Usage("instant_unreadable.length", name=name, given=given) from None


def value(name: str, given: str | None) -> Any:
    """Read an option that is JSON text.

    Raises:
        Usage: it is not strict JSON, in which no object has a name twice.
    """
    if given is None:
        return None
    try:
        return prescan.decode(given)
    except prescan.JsonRefused as refused:
        raise Usage("not_json", name=name, reason=refused.__cause__ or refused) from None

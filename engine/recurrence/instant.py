"""ISO 8601 and RFC 5545 points in time in text: instants with an offset, local times without one."""

import re
from datetime import UTC, datetime, timedelta

from lodger.engine.recurrence.rule_errors import RuleInvalid

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
#: First and last instant of the calendar.
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

_TIME = (
    r"(?P<Y>[0-9]{4})-(?P<M>[0-9]{2})-(?P<D>[0-9]{2})"
    r"(?:[Tt ](?P<h>[0-9]{2}):(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2})(?:[.,](?P<f>[0-9]{1,6})0*)?)?)?"
    r"[ ]?(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?\Z"
)
_BASIC = (
    r"(?P<Y>[0-9]{4})(?P<M>[0-9]{2})(?P<D>[0-9]{2})"
    r"(?:[Tt](?P<h>[0-9]{2})(?P<m>[0-9]{2})(?P<s>[0-9]{2})(?P<f>)?)?(?P<zone>[Zz])?\Z"
)


def instant_us(instant: datetime) -> int:
    """Microseconds since 1970 of an aware instant."""
    if instant.tzinfo is None:
        raise TypeError("a naive datetime is not an instant")
    return (instant - EPOCH) // MICROSECOND


def us_instant(us: int) -> datetime:
    """Return the aware UTC instant of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=us)


def parse_time(text: str, index: int = 0) -> datetime:
    """Read a point in time.

    Returns:
        An aware UTC datetime when the text has an offset, else a naive one: the wall clock of a zone to be
        named.

    Raises:
        RuleInvalid: ``time_invalid``.
    """
    match = (re.match(_TIME, text) or re.match(_BASIC, text)) if len(text) <= 64 else None
    if match is None:
        raise RuleInvalid("time_invalid.form", text=text[:40], index=index)
    year, month, day, hour, minute, second = (int(match[part] or 0) for part in "YMDhms")
    fraction = int((match["f"] or "").ljust(6, "0"))
    try:
        local = datetime(year, month, day, hour, minute, second, fraction)  # noqa: DTZ001 - naive until the offset is read
        if match["zone"] is None:
            return local
        return (local - _offset(match["zone"])).replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise RuleInvalid("time_invalid", text=text, reason=error, index=index) from None


def _offset(zone: str) -> timedelta:
    """Return the offset of a zone that has a fixed one."""
    if zone in "Zz":
        return timedelta(0)
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError("an offset is at most 23:59")
    return timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)


def format_instant(instant: datetime) -> str:
    """Return an instant in ISO 8601, in UTC with ``Z``; with a fraction only when there is one."""
    whole, dot, fraction = instant.astimezone(UTC).replace(tzinfo=None).isoformat().partition(".")
    return f"{whole}{dot}{fraction.rstrip('0')}Z"

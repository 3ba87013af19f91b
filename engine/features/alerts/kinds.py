"""Kinds of alerts, the kind of a slot that did not run, and quiet hours: windows of local time in which alerts wait."""

import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from functools import lru_cache, reduce
from operator import or_

from lodger.engine.core.errors import InputError
from lodger.engine.recurrence.calendar.zones import python_zone


class AlertKind(StrEnum):
    """Kind of condition that an alert reports."""

    FAILED = "failed"
    RECOVERED = "recovered"
    LATE = "late"
    MISSED = "missed"
    OVERRAN = "overran"
    SLOW = "slow"
    BUDGET = "budget"
    SILENT = "silent"


#: Alerts of a schedule that stay open until a run of it succeeds; the same alert is not raised again meanwhile.
UNTIL_SUCCESS = frozenset({AlertKind.FAILED, AlertKind.LATE, AlertKind.MISSED, AlertKind.OVERRAN, AlertKind.SILENT})
#: Reasons of skipped slots that are a user's choice: no alert.
CHOSEN = frozenset({"paused", "schedule_deleted", "tenant_suspended", "superseded", "requested", "retried"})
#: Reasons of skipped slots because earlier runs had not ended.
OVERLAPPED = frozenset({"overlap", "queue_full"})


def kind_of(state: str, reason: str | None) -> AlertKind | None:
    """Return the kind of alert for an action that ended without success, None if it needs none."""
    if state == "failed":
        return AlertKind.FAILED
    if reason in OVERLAPPED:
        return AlertKind.OVERRAN
    return None if reason in CHOSEN else AlertKind.MISSED


_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WINDOW = re.compile(r"(?:([a-z]{3}(?:-[a-z]{3})?(?:,[a-z]{3}(?:-[a-z]{3})?)*) )?(\d\d):(\d\d)-(\d\d):(\d\d)", re.ASCII)
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES
_EVERY_MINUTE = (1 << _WEEK_MINUTES) - 1


@lru_cache(1000)
def parse_window(text: str) -> int:
    """Return the minutes of the week in a window such as ``22:00-07:00`` or ``sat,sun 00:00-24:00``: one bit each, from Monday on.

    A window that ends before it begins ends on the next day.

    Raises:
        InputError: quiet_hours_invalid.
    """
    found = _WINDOW.fullmatch(text)
    if found is not None:
        days = frozenset(range(7)) if found[1] is None else _days(found[1])
        start, end = (int(found[n]) * 60 + int(found[n + 1]) for n in (2, 4))
        minutes = int(found[3]) < 60 and int(found[5]) < 60
        if days and minutes and start < _DAY_MINUTES and end <= _DAY_MINUTES and start != end:
            length = (end - start) % _DAY_MINUTES or _DAY_MINUTES
            bits = sum(((1 << length) - 1) << (day * _DAY_MINUTES + start) for day in days)
            return (bits | bits >> _WEEK_MINUTES) & _EVERY_MINUTE  # from Sunday into Monday
    raise InputError("quiet_hours_invalid", text=text)


def require_loud(windows: Iterable[str]) -> None:
    """Require windows that leave a minute of the week: in hours without an end alerts would wait for ever.

    Raises:
        InputError: quiet_hours_invalid.
    """
    if reduce(or_, map(parse_window, windows), 0) == _EVERY_MINUTE:
        raise InputError("quiet_hours_invalid.endless")


def _days(text: str) -> frozenset[int]:
    """Return the weekdays of a list of days and ranges; none if a name is unknown."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in _DAYS or (last or first) not in _DAYS:
            return frozenset()
        start, length = _DAYS.index(first), (_DAYS.index(last or first) - _DAYS.index(first)) % 7
        found.update((start + each) % 7 for each in range(length + 1))
    return frozenset(found)


def is_quiet(windows: Iterable[str], zone: str, now: datetime) -> bool:
    """Whether an aware instant lies in one of these windows of a zone's local time."""
    local = now.astimezone(python_zone(zone))
    minute = local.weekday() * _DAY_MINUTES + local.hour * 60 + local.minute
    return any(parse_window(each) >> minute & 1 for each in windows)

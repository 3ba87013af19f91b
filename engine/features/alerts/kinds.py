"""Kinds of alerts, the kind of a slot that did not run, and quiet hours: windows of local time in which alerts wait."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class Window:
    """A window of local time: the weekdays (0 is Monday) on which it begins, its first minute of the day, and the minute after its last.

    One that ends before it begins ends on the next day.
    """

    days: frozenset[int]
    start: int
    end: int

    def covers(self, weekday: int, minute: int) -> bool:
        """Whether a minute of a weekday lies in the window."""
        if self.start < self.end:
            return weekday in self.days and self.start <= minute < self.end
        return (weekday in self.days and minute >= self.start) or ((weekday - 1) % 7 in self.days and minute < self.end)


def parse_window(text: str) -> Window:
    """Parse a window such as ``22:00-07:00`` or ``sat,sun 00:00-24:00``.

    Raises:
        InputError: quiet_hours_invalid.
    """
    found = _WINDOW.fullmatch(text)
    if found is not None:
        days = frozenset(range(7)) if found[1] is None else _days(found[1])
        start, end = (int(found[n]) * 60 + int(found[n + 1]) for n in (2, 4))
        minutes = int(found[3]) < 60 and int(found[5]) < 60
        if days and minutes and start < _DAY_MINUTES and end <= _DAY_MINUTES and start != end:
            return Window(days, start, end)
    raise InputError("quiet_hours_invalid", text=text)


def require_loud(windows: Iterable[str]) -> None:
    """Require windows that leave a minute of the week: in hours without an end alerts would wait for ever.

    Raises:
        InputError: quiet_hours_invalid.
    """
    quiet = 0  # one bit for each minute of the week; a window that begins on Sunday goes beyond it
    for window in map(parse_window, windows):
        length = (window.end - window.start) % _DAY_MINUTES or _DAY_MINUTES
        for day in window.days:
            quiet |= ((1 << length) - 1) << (day * _DAY_MINUTES + window.start)
    week = (1 << 7 * _DAY_MINUTES) - 1
    if (quiet | quiet >> 7 * _DAY_MINUTES) & week == week:
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
    return any(parse_window(each).covers(local.weekday(), local.hour * 60 + local.minute) for each in windows)

"""The POSIX TZ rule at the end of a compiled zone (RFC 8536 §3.3): the transitions of every later year."""

import re
from dataclasses import dataclass
from functools import cache

from lodger.engine.recurrence.calendar.civil import (
    DAY_S,
    DAYS_BEFORE_MONTH,
    days_in_month,
    is_leap,
    weekday,
    year_start,
)

_NAME = r"(?:<[A-Za-z0-9+-]+>|[A-Za-z]+)"
_TIME = r"[+-]?\d+(?::\d+){0,2}"
_RULE = re.compile(
    rf"{_NAME}(?P<std>{_TIME})"
    rf"(?:{_NAME}(?P<dst>{_TIME})?,(?P<on>[^,/]+)(?:/(?P<on_at>{_TIME}))?,(?P<off>[^,/]+)(?:/(?P<off_at>{_TIME}))?)?\Z"
)
_MONTH_WEEK_DAY = re.compile(r"M(\d+)\.(\d)\.(\d)\Z")


def _seconds(text: str) -> int:
    """Return seconds from a text ``[-]hh[:mm[:ss]]``."""
    sign = -1 if text.startswith("-") else 1
    fields = [int(part) for part in text.lstrip("+-").split(":")] + [0, 0]
    return sign * (fields[0] * 3600 + fields[1] * 60 + fields[2])


@cache
def _read(date: str) -> tuple[int, int, int]:
    """Month, week and weekday; for dates that are numbers of days 0, the number, and whether February 29 is never counted."""
    if found := _MONTH_WEEK_DAY.match(date):
        month, week, dow = (int(part) for part in found.groups())
        return month, week, dow
    return (0, int(date[1:]), 1) if date.startswith("J") else (0, int(date), 0)


def _day(date: str, year: int) -> int:
    """Day number on which a POSIX date (Mm.w.d, Jn or n) falls."""
    month, week, dow = _read(date)
    start = year_start(year)
    if month:
        first = start + DAYS_BEFORE_MONTH[is_leap(year)][month]
        day = first + (dow - 1 - weekday(first)) % 7 + 7 * (week - 1)  # POSIX counts weekdays from Sunday = 0
        while day >= first + days_in_month(year, month):
            day -= 7
        return day
    if dow:  # 1 to 365
        return start + week - 1 + (is_leap(year) and week > 59)
    return start + week


@dataclass(frozen=True, slots=True)
class PosixRule:
    """Standard and summer offsets in seconds east of UTC, and when each begins."""

    standard: int
    summer: int
    on: str
    on_at: int
    off: str
    off_at: int

    @property
    def changes(self) -> bool:
        """Whether the clock changes at all."""
        return self.standard != self.summer

    def transitions(self, year: int) -> list[tuple[int, int]]:
        """UTC second and new offset of each change in a year, ascending."""
        begins = _day(self.on, year) * DAY_S + self.on_at - self.standard
        ends = _day(self.off, year) * DAY_S + self.off_at - self.summer
        return sorted([(begins, self.summer), (ends, self.standard)])


def parse_posix(text: str) -> PosixRule:
    """Read a footer; ValueError when it is none."""
    found = _RULE.match(text)
    if not found:
        raise ValueError(f"not a POSIX TZ rule: {text!r}")
    standard = -_seconds(found["std"])
    if not found["on"]:
        return PosixRule(standard, standard, "", 0, "", 0)
    summer = -_seconds(found["dst"]) if found["dst"] else standard + 3600
    return PosixRule(
        standard, summer, found["on"], _seconds(found["on_at"] or "2"), found["off"], _seconds(found["off_at"] or "2")
    )

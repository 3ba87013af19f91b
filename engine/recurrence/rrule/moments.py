"""Dates, times and durations as RFC 5545 writes them, and ISO instants where a caller gives one beside the rule."""

import re
from dataclasses import dataclass

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.instant import parse_time
from lodger.engine.recurrence.rule_errors import RuleInvalid

_DATE = r"(\d{4})(\d{2})(\d{2})"
_TIME = r"T(\d{2})(\d{2})(\d{2})"
_OFFSET = r"\d{8}T\d{6}[+-]\d{2}:?\d{2}\Z"
_DURATION = r"\+?P(?:(\d{1,6})W|(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?)\Z"
_ISO = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?\Z"


@dataclass(frozen=True, slots=True)
class Moment:
    """A local second (or a UTC second when ``utc``); ``date`` when no time was written."""

    second: int
    utc: bool = False
    date: bool = False


def read_moment(text: str, index: int) -> Moment:
    """Read YYYYMMDD or YYYYMMDDTHHMMSS[Z]; ``index`` is where the text stands in the whole."""
    upper = text.upper()
    date = re.match(_DATE, upper)
    if re.match(_OFFSET, upper):
        raise RuleInvalid("offset_forbidden", text=text, index=index + 15)
    if not date or not upper.isascii():
        raise RuleInvalid("date_malformed", text=text[:40], index=index)
    year, month, dom = (int(part) for part in date.groups())
    try:
        day = civil.day_of(year, month, dom)
    except ValueError:
        raise RuleInvalid("date_impossible", text=text[:8], index=index) from None
    rest = upper[8:]
    if not rest:
        return Moment(day * civil.DAY_S, date=True)
    time = re.match(_TIME, rest)
    if not time or rest[7:] not in ("", "Z"):
        raise RuleInvalid("date_malformed.date_time", text=text[:40], index=index + 8)
    hour, minute, second = (int(part) for part in time.groups())
    if hour > 23 or minute > 59 or second > 60:
        raise RuleInvalid("date_impossible.time", text=rest[1:7], index=index + 9)
    # A clock without leap seconds reads second 60 as 59 (RFC 5545 §3.3.12).
    local = day * civil.DAY_S + hour * 3600 + minute * 60 + min(second, 59)
    return Moment(local, utc=rest.endswith("Z"))


def read_start(text: str) -> Moment:
    """Read the anchor that a caller gives beside the rule: RFC 5545 form, ISO local time or ISO instant."""
    text = text.strip()
    if not re.match(_ISO, text):
        return read_moment(text, 0)
    parsed = parse_time(text)
    if parsed.tzinfo is not None:
        return Moment(civil.utc_floor(parsed)[0], utc=True)
    return Moment(civil.local_of(parsed), date=len(text) == 10)


@dataclass(frozen=True, slots=True)
class Length:
    """A duration: calendar days, then seconds (RFC 5545 §3.3.6)."""

    days: int
    seconds: int


def read_duration(text: str, index: int) -> Length:
    """Read a positive RFC 5545 duration; its weeks and days are those of the calendar, 23 to 25 hours at changes of the clock."""
    found = re.match(_DURATION, text.upper())
    if found:
        weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        length = Length(weeks * 7 + days, hours * 3600 + minutes * 60 + seconds)
        if length.days or length.seconds:
            return length
    raise RuleInvalid("duration_malformed", text=text[:40], index=index)

"""Lengths of time in text: ``90s``, ``1h30m``, ``2 days 3 hours``, ``PT90S``; whole microseconds inside.

Only units of fixed length are accepted; months and years are refused with an alternative. A day is 24 hours.
"""

import re

from lodger.engine.recurrence.rule_errors import RuleInvalid

MILLISECOND_US = 1_000
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
WEEK_US = 7 * DAY_US
#: Longer than the whole calendar: nothing beyond it can name an instant.
LONGEST_US = 9999 * 366 * DAY_US

_NAMES = {
    MILLISECOND_US: "ms millisecond milliseconds",
    SECOND_US: "s sec secs second seconds",
    MINUTE_US: "m min mins minute minutes",
    HOUR_US: "h hr hrs hour hours",
    DAY_US: "d day days",
    WEEK_US: "w wk wks week weeks",
}
UNITS = {name: us for us, names in _NAMES.items() for name in names.split()}
_WORDS = (
    (DAY_US, "day"),
    (HOUR_US, "hour"),
    (MINUTE_US, "minute"),
    (SECOND_US, "second"),
    (MILLISECOND_US, "millisecond"),
)
_PART = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,9}))?[ \t]*([A-Za-z]{1,16})")
_BETWEEN = re.compile(r"[ \t]*(?:,[ \t]*|and[ \t]+)?")
_ISO = re.compile(
    r"P(?:(?P<w>[0-9]{1,15})W|(?:(?P<d>[0-9]{1,15})D)?"
    r"(?:T(?=[0-9])(?:(?P<h>[0-9]{1,15})H)?(?:(?P<m>[0-9]{1,15})M)?(?:(?P<s>[0-9]{1,15})(?:[.,](?P<f>[0-9]{1,9}))?S)?)?)\Z",
    re.IGNORECASE | re.ASCII,
)
_CALENDAR_UNITS = {"mo", "month", "months", "y", "yr", "yrs", "year", "years", "quarter", "quarters"}


def _no_calendar(unit: str, index: int) -> RuleInvalid:
    """Return the error of a unit without a fixed length, such as the month."""
    return RuleInvalid("duration_invalid.calendar", unit=unit, index=index)


def _fraction_us(digits: str | None, unit_us: int, index: int) -> int:
    """Return the microseconds of the digits after a decimal point, for a unit of so many; 0 without digits."""
    if not digits:
        return 0
    scale: int = 10 ** len(digits)
    us, rest = divmod(int(digits) * unit_us, scale)
    if rest:
        raise RuleInvalid("duration_invalid.fraction", index=index)
    return us


def _bounded(us: int, index: int) -> int:
    """Return a length in microseconds; raises RuleInvalid if it is too long."""
    if us > LONGEST_US:
        raise RuleInvalid("duration_invalid.long", index=index)
    return us


def _iso(text: str, index: int) -> int:
    """Return the microseconds of an ISO 8601 duration."""
    match = _ISO.match(text)
    if match is None or not any(match.groupdict().values()):
        head = text.upper().split("T")[0]
        if re.match(r"P[0-9]+[YM]|P[0-9]+Y", head):
            raise _no_calendar(text[:24], index)
        raise RuleInvalid("duration_invalid.iso", text=text[:40], index=index)
    us = sum(
        int(match[name] or 0) * unit
        for name, unit in (("w", WEEK_US), ("d", DAY_US), ("h", HOUR_US), ("m", MINUTE_US), ("s", SECOND_US))
    )
    return _bounded(us + _fraction_us(match["f"], SECOND_US, index), index)


def parse_duration(text: str, index: int = 0) -> int:
    """Microseconds of a length of time.

    Args:
        text: the length, without anything around it.
        index: position of ``text`` in the caller's text; added to the position of an error.

    Raises:
        RuleInvalid: ``duration_invalid`` with the position of the mistake. Zero is accepted.
    """
    if text[:1] in ("P", "p"):
        return _iso(text, index)
    total, at, finest = 0, 0, LONGEST_US
    while at < len(text) or not at:
        match = _PART.match(text, at)
        if match is None:
            raise RuleInvalid("duration_invalid.form", text=text[at : at + 24], index=index + at)
        whole, fraction, name = match.groups()
        unit = UNITS.get(name.lower())
        if unit is None:
            if name.lower() in _CALENDAR_UNITS:
                raise _no_calendar(name, index + match.start(3))
            raise RuleInvalid("duration_invalid.unit", name=name, index=index + match.start(3))
        if name == "M" and finest > HOUR_US:
            raise RuleInvalid("duration_invalid.month_or_minute", text=match[0], index=index + match.start(3))
        if unit >= finest:
            raise RuleInvalid("duration_invalid.order", name=name, index=index + match.start(3))
        finest = unit
        total += int(whole) * unit + _fraction_us(fraction, unit, index + at)
        at = match.end()
        gap = _BETWEEN.match(text, at)
        if gap and at < len(text):
            at = gap.end()
            if at == len(text):
                raise RuleInvalid("duration_invalid.end", index=index + at)
    return _bounded(total, index)


def duration_in_words(us: int, *, days: bool = True) -> str:
    """Return a length in words, such as ``1 hour 30 minutes``: exact, the largest unit is the day, or without ``days`` the hour."""
    parts = []
    for unit, name in _WORDS if days else _WORDS[1:]:
        count, us = divmod(us, unit)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    if us or not parts:
        parts.append(f"{us} microsecond{'' if us == 1 else 's'}")
    return " ".join(parts)

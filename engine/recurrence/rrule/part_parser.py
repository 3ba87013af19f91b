"""The strict parser of one RRULE value: ``FREQ=WEEKLY;BYDAY=MO,WE``."""

import re
from typing import Any

from lodger.engine.recurrence.rrule.faults import RULE_BYTES, fault
from lodger.engine.recurrence.rrule.moments import read_moment
from lodger.engine.recurrence.rrule.parts import Freq, Rule, Until

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_NUMBER, _ORDINAL = re.compile(r"[+-]?[0-9]{1,9}"), re.compile(r"[+-]?[0-9]{1,2}")
_ALIASES = {"BYWEEKDAY": "BYDAY"}

#: Part: smallest value, greatest value, whether negative values count from the end.
RANGES = {
    "BYSECOND": (0, 60, False),
    "BYMINUTE": (0, 59, False),
    "BYHOUR": (0, 23, False),
    "BYMONTHDAY": (1, 31, True),
    "BYYEARDAY": (1, 366, True),
    "BYWEEKNO": (1, 53, True),
    "BYMONTH": (1, 12, False),
    "BYSETPOS": (1, 366, True),
}
_CHOOSING = (
    "bymonth",
    "byweekno",
    "byyearday",
    "bymonthday",
    "byday",
    "byhour",
    "byminute",
    "bysecond",
)


def parse_parts(text: str, at: int = 0, *, dateutil: bool = False) -> Rule:
    """Read a rule's value; positions in errors count from ``at``; ``dateutil``: it says what an object of its means.

    Raises:
        RuleInvalid: with code, reason, cure and position.
    """
    if len(text) > RULE_BYTES:
        raise fault("rule_too_long", f"the rule has {len(text)} bytes", at)
    seen: dict[str, tuple[str, int]] = {}
    position = 0
    pieces = text.split(";")
    if len(pieces) > 1 and not pieces[-1]:
        pieces.pop()  # one semicolon after the last part is harmless and common
    for piece in pieces:
        here = at + position
        position += len(piece) + 1
        name, equals, value = piece.partition("=")
        name = name.upper()
        if not equals or not name or not value:
            raise fault("part_malformed", f"{piece[:40]!r} is not a part of a rule", here)
        name = _ALIASES.get(name, name)
        if name == "BYEASTER":
            raise fault("easter_unsupported", "BYEASTER is not supported", here)
        if name in ("RSCALE", "SKIP"):
            raise fault("rscale_unsupported", f"{name} is not supported", here)
        if name not in RANGES and name not in ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY"):
            raise fault("part_unknown", f"{name[:40]!r} is not a part of a rule", here)
        if name in seen:
            raise fault("part_repeated", f"{name} is given twice", here)
        seen[name] = (value, here + len(piece) - len(value))
    return _build(seen, at, dateutil=dateutil)


def _build(seen: dict[str, tuple[str, int]], at: int, *, dateutil: bool) -> Rule:
    if "FREQ" not in seen:
        raise fault("freq_missing", "the rule has no FREQ", at)
    value, where = seen["FREQ"]
    try:
        freq = Freq[value.upper()]
    except KeyError:
        raise fault("freq_unknown", f"{value[:40]!r} is not a frequency", where) from None
    fields: dict[str, Any] = {}
    for name, (low, high, negative) in RANGES.items():
        if name in seen:
            fields[name.lower()] = _numbers(name, *seen[name], low, high, negative=negative)
    if "bysecond" in fields:  # a clock without leap seconds reads second 60 as 59 (RFC 5545 §3.3.12)
        fields["bysecond"] = tuple(sorted({min(second, 59) for second in fields["bysecond"]}))
    if "BYDAY" in seen:
        fields["byday"] = _weekdays(*seen["BYDAY"], freq, with_weeks="BYWEEKNO" in seen and not dateutil)
    for name in ("INTERVAL", "COUNT"):
        if name in seen:
            fields[name.lower()] = _number(name, *seen[name], 1, 999_999_999, negative=False)
    if "WKST" in seen:
        value, where = seen["WKST"]
        if value.upper() not in WEEKDAYS:
            raise fault("weekday_malformed", f"{value[:40]!r} is not a weekday", where)
        fields["wkst"] = WEEKDAYS.index(value.upper())
    if "UNTIL" in seen:
        if "COUNT" in seen and not dateutil:
            first, second = sorted(("COUNT", "UNTIL"), key=lambda name: seen[name][1])
            raise fault("count_and_until", f"the rule has both {first} and {second}", seen[second][1])
        moment = read_moment(*seen["UNTIL"])
        fields["until"] = Until(moment.second, moment.utc, moment.date)
    if "bysetpos" in fields and not dateutil and not any(name in fields for name in _CHOOSING):
        raise fault("setpos_alone", "BYSETPOS is given without another BY part", seen["BYSETPOS"][1])
    return Rule(freq=freq, dateutil=dateutil, **fields)


def _number(name: str, text: str, at: int, low: int, high: int, *, negative: bool) -> int:
    if not _NUMBER.fullmatch(text):
        if len(text) > 9 and text.lstrip("+-").isdecimal() and text.isascii():
            raise _out_of_range(name, text[:12] + "...", at, low, high, negative=negative)
        raise fault("number_malformed", f"{text[:40]!r} is not a number for {name}", at)
    if text[0] in "+-" and not negative:
        raise fault("number_malformed", f"{text!r} has a sign, which {name} does not allow", at)
    value = int(text)
    if not low <= (abs(value) if negative else value) <= high:
        raise _out_of_range(name, text, at, low, high, negative=negative)
    return value


def _out_of_range(name: str, text: str, at: int, low: int, high: int, *, negative: bool) -> Exception:
    span = f"{low} to {high}" + (f" or -{high} to -{low}" if negative else "")
    return fault("number_out_of_range", f"{name} cannot be {text}", at, why=f"{name} goes from {span}")


def _numbers(name: str, text: str, at: int, low: int, high: int, *, negative: bool) -> tuple[int, ...]:
    values, position = set(), 0
    for piece in text.split(","):
        values.add(_number(name, piece, at + position, low, high, negative=negative))
        position += len(piece) + 1
    return tuple(sorted(values))


def _weekdays(text: str, at: int, freq: Freq, *, with_weeks: bool) -> tuple[tuple[int, int], ...]:
    values, position = set(), 0
    for piece in text.split(","):
        here = at + position
        position += len(piece) + 1
        number, name = piece[:-2], piece[-2:].upper()
        if name not in WEEKDAYS or (number and not _ORDINAL.fullmatch(number)):
            raise fault("weekday_malformed", f"{piece[:40]!r} is not a weekday", here)
        ordinal = int(number) if number else 0
        if number and not 1 <= abs(ordinal) <= 53:
            raise fault(
                "number_out_of_range",
                f"BYDAY cannot be {piece}",
                here,
                why="the number before a weekday is from 1 to 53 or from -53 to -1",
            )
        if ordinal and (freq > Freq.MONTHLY or (freq is Freq.YEARLY and with_weeks)):
            raise fault("weekday_number_forbidden", f"{piece} has a number before its weekday", here)
        values.add((ordinal, WEEKDAYS.index(name)))
    return tuple(sorted(values))

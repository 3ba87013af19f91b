"""The strict parser of one RRULE value: ``FREQ=WEEKLY;BYDAY=MO,WE``."""

import re
from typing import Any

from lodger.engine.recurrence.rrule.bounds import RULE_BYTES
from lodger.engine.recurrence.rrule.moments import read_moment
from lodger.engine.recurrence.rrule.parts import Freq, Rule
from lodger.engine.recurrence.rule_errors import RuleInvalid

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
    "INTERVAL": (1, 999_999_999, False),
    "COUNT": (1, 999_999_999, False),
}
_CHOOSING = ("bymonth", "byweekno", "byyearday", "bymonthday", "byday", "byhour", "byminute", "bysecond")


def parse_parts(text: str, at: int = 0) -> Rule:
    """Read a rule's value; positions in errors count from ``at``.

    Raises:
        RuleInvalid: with code, reason, cure and position.
    """
    if len(text) > RULE_BYTES:
        raise RuleInvalid("rule_too_long.part", count=len(text), maximum=RULE_BYTES, index=at)
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
            raise RuleInvalid("part_malformed", piece=piece[:40], index=here)
        name = _ALIASES.get(name, name)
        if name == "BYEASTER":
            raise RuleInvalid("easter_unsupported", index=here)
        if name in ("RSCALE", "SKIP"):
            raise RuleInvalid("rscale_unsupported", name=name, index=here)
        if name not in RANGES and name not in ("FREQ", "UNTIL", "WKST", "BYDAY"):
            raise RuleInvalid("part_unknown", name=name[:40], index=here)
        if name in seen:
            raise RuleInvalid("part_repeated", name=name, index=here)
        seen[name] = (value, here + len(piece) - len(value))
    return _build(seen, at)


def _build(seen: dict[str, tuple[str, int]], at: int) -> Rule:
    """Return the rule of parts by name, each with its text and position; refuses parts that contradict each other."""
    if "FREQ" not in seen:
        raise RuleInvalid("freq_missing", index=at)
    value, where = seen["FREQ"]
    try:
        freq = Freq[value.upper()]
    except KeyError:
        raise RuleInvalid("freq_unknown", value=value[:40], index=where) from None
    fields: dict[str, Any] = {}
    for name in RANGES:
        if name in seen:
            numbers = _numbers(name, *seen[name])
            fields[name.lower()] = numbers if name.startswith("BY") else numbers[0]
    if "bysecond" in fields:  # a clock without leap seconds reads second 60 as 59 (RFC 5545 §3.3.12)
        fields["bysecond"] = tuple(sorted({min(second, 59) for second in fields["bysecond"]}))
    if "BYDAY" in seen:
        fields["byday"] = _weekdays(*seen["BYDAY"], freq, with_weeks="BYWEEKNO" in seen)
    if "WKST" in seen:
        value, where = seen["WKST"]
        if value.upper() not in WEEKDAYS:
            raise RuleInvalid("weekday_malformed", text=value[:40], index=where)
        fields["wkst"] = WEEKDAYS.index(value.upper())
    if "UNTIL" in seen:
        if "COUNT" in seen:
            first, second = sorted(("COUNT", "UNTIL"), key=lambda name: seen[name][1])
            raise RuleInvalid("count_and_until", first=first, second=second, index=seen[second][1])
        fields["until"] = read_moment(*seen["UNTIL"])
    if "bysetpos" in fields and not any(name in fields for name in _CHOOSING):
        raise RuleInvalid("setpos_alone", index=seen["BYSETPOS"][1])
    return Rule(freq=freq, **fields)


def _number(name: str, text: str, at: int) -> int:
    """Return a number of a part, within its range."""
    low, high, negative = RANGES[name]
    malformed = not _NUMBER.fullmatch(text)
    if malformed and not (len(text) > 9 and text.lstrip("+-").isdecimal() and text.isascii()):
        raise RuleInvalid("number_malformed", text=text[:40], name=name, index=at)
    if not malformed and text[0] in "+-" and not negative:
        raise RuleInvalid("number_malformed.sign", text=text, name=name, index=at)
    if malformed or not low <= (abs(int(text)) if negative else int(text)) <= high:
        shown = f"{text[:12]}..." if malformed else text
        span = f"{low} to {high}" + (f" or -{high} to -{low}" if negative else "")
        raise RuleInvalid("number_out_of_range", name=name, value=shown, span=span, index=at)
    return int(text)


def _numbers(name: str, text: str, at: int) -> tuple[int, ...]:
    """Return the numbers of a part; INTERVAL and COUNT have one."""
    values, position = set(), 0
    for piece in text.split(",") if name.startswith("BY") else [text]:
        values.add(_number(name, piece, at + position))
        position += len(piece) + 1
    return tuple(sorted(values))


def _weekdays(text: str, at: int, freq: Freq, *, with_weeks: bool) -> tuple[tuple[int, int], ...]:
    """Return the list of weekdays of a part."""
    values, position = set(), 0
    for piece in text.split(","):
        here = at + position
        position += len(piece) + 1
        number, name = piece[:-2], piece[-2:].upper()
        if name not in WEEKDAYS or (number and not _ORDINAL.fullmatch(number)):
            raise RuleInvalid("weekday_malformed", text=piece[:40], index=here)
        ordinal = int(number) if number else 0
        if number and not 1 <= abs(ordinal) <= 53:
            raise RuleInvalid("number_out_of_range.weekday", piece=piece, index=here)
        if ordinal and (freq > Freq.MONTHLY or (freq is Freq.YEARLY and with_weeks)):
            raise RuleInvalid("weekday_number_forbidden", piece=piece, index=here)
        values.add((ordinal, WEEKDAYS.index(name)))
    return tuple(sorted(values))

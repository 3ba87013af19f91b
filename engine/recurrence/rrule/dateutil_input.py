"""python-dateutil ``rrule`` and ``rruleset`` objects as input: read into the text that has the same slots.

dateutil fills in what a rule lacks when the object is made, and those filled values are what is read. Where it means
something else than the RFC, its faults included, the line says ``X-LODGER-READING=DATEUTIL`` and is read as dateutil
reads it (:mod:`lodger.engine.recurrence.rrule.dateutil_reading`): an object keeps its own slots, because it has fired
by them. dateutil itself is never imported.
"""

from datetime import UTC, datetime, tzinfo
from typing import Any

from lodger.engine.recurrence.calendar.zones import zone_names
from lodger.engine.recurrence.rrule.part_parser import WEEKDAYS
from lodger.engine.recurrence.rrule.parts import Freq
from lodger.engine.recurrence.rule import Kind, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid


def from_dateutil(rule: object) -> RuleSpec:
    """Read an ``rrule`` or ``rruleset`` object.

    Local times are wall-clock times of the object's zone, as dateutil counts them; one that DST skips is read with the
    offset before the gap.

    Raises:
        RuleInvalid: ``dateutil_unreadable`` for what has no text: BYEASTER, a zone without IANA name, rules of one
            set in different zones, a rule that never fires because no value of a part exists; ``TypeError`` is never
            raised for foreign objects.
    """
    if hasattr(rule, "_freq") and hasattr(rule, "_dtstart"):
        return RuleSpec(_set_text(rule._dtstart, [rule], [], [], []), Kind.RRULE)
    names = ("_rrule", "_rdate", "_exrule", "_exdate")
    if not all(isinstance(getattr(rule, name, None), list) for name in names):
        raise RuleInvalid("dateutil_unreadable.kind", type=type(rule).__name__)
    rules, rdates, exrules, exdates = (getattr(rule, name) for name in names)
    starts = [each._dtstart for each in [*rules, *exrules]]
    if len({_zone_of(start) for start in starts}) > 1:
        raise RuleInvalid("dateutil_unreadable.zones")
    if not starts and not rdates:
        raise RuleInvalid("dateutil_unreadable.empty")
    start = starts[0] if starts else min(rdates)
    return RuleSpec(_set_text(start, rules, rdates, exrules, exdates), Kind.RRULE)


def _set_text(
    start: datetime, rules: list[Any], rdates: list[datetime], exrules: list[Any], exdates: list[datetime]
) -> str:
    lines = [f"DTSTART{_moment(start)}"]
    lines += [f"RRULE{_line(each, start)}" for each in rules]
    lines += [f"RDATE{_moment(each)}" for each in rdates]
    lines += [f"EXRULE{_line(each, start)}" for each in exrules]
    lines += [f"EXDATE{_moment(each)}" for each in exdates]
    if not rules and not rdates:  # EXRULE and EXDATE alone: the set has no slot, and DTSTART is none either
        raise RuleInvalid("dateutil_unreadable.exceptions")
    return "\n".join(lines)


def _written(moment: datetime) -> str:
    return f"{moment.year:04}{moment:%m%dT%H%M%S}"


def _moment(moment: datetime) -> str:
    name = _zone_of(moment)
    if name is None:
        return f":{_written(moment)}"
    return f":{_written(moment)}Z" if name == "UTC" else f";TZID={name}:{_written(moment)}"


def _zone_of(moment: datetime) -> str | None:
    return None if moment.tzinfo is None else _zone_name(moment.tzinfo, moment)


def _zone_name(zone: tzinfo, moment: datetime) -> str:
    key = getattr(zone, "key", None)
    if isinstance(key, str) and key in zone_names():
        return key
    file = getattr(zone, "_filename", None)  # dateutil.tz.gettz
    if isinstance(file, str):
        pieces = file.split("/")
        for i in range(max(0, len(pieces) - 3), len(pieces)):
            if "/".join(pieces[i:]) in zone_names():
                return "/".join(pieces[i:])
    if zone is UTC or (type(zone).__name__ in ("tzutc", "timezone") and not moment.utcoffset()):
        return "UTC"
    raise RuleInvalid("dateutil_unreadable.zone", zone=zone)


def _line(rule: Any, start: datetime) -> str:
    """Parameters and value of one rule."""
    if rule._byeaster:
        raise RuleInvalid("dateutil_unreadable.easter")
    freq = Freq(rule._freq)
    if not isinstance(rule._interval, int) or rule._interval < 1 or (rule._count is not None and rule._count < 1):
        raise RuleInvalid("dateutil_unreadable.interval")
    parts = [f"FREQ={freq.name}", f"INTERVAL={rule._interval}", f"WKST={WEEKDAYS[rule._wkst]}"]
    if rule._count is not None:
        parts.append(f"COUNT={rule._count}")
    if rule._until is not None:
        parts.append(f"UNTIL={_until(rule._until, rule._dtstart)}")
    days = _weekdays(rule)
    lists: list[tuple[str, list[Any]]] = [
        ("BYMONTH", _existing(rule, "_bymonth", 1, 12)),
        ("BYWEEKNO", _existing(rule, "_byweekno", 1, 53, signed=True)),
        ("BYYEARDAY", _existing(rule, "_byyearday", 1, 366, signed=True)),
        ("BYMONTHDAY", _month_days(rule)),
        ("BYDAY", days),
        ("BYHOUR", _existing(rule, "_byhour", 0, 23)),
        ("BYMINUTE", _existing(rule, "_byminute", 0, 59)),
        ("BYSECOND", _existing(rule, "_bysecond", 0, 59)),
        ("BYSETPOS", _existing(rule, "_bysetpos", 1, 366, signed=True)),
    ]
    chooses = any(values for name, values in lists if name in ("BYYEARDAY", "BYMONTHDAY", "BYDAY"))
    parts += [f"{name}={','.join(str(each) for each in values)}" for name, values in lists if values]
    zoned = _zone_of(rule._dtstart) not in (None, "UTC")
    own = (
        bool(rule._byweekno or rule._bysetpos)
        or (rule._count is not None and rule._until is not None)
        or (freq >= Freq.HOURLY and zoned)
        or (freq < Freq.DAILY and not chooses)
    )
    parameters = ";X-LODGER-READING=DATEUTIL" if own else ""
    if rule._dtstart.replace(microsecond=0) != start.replace(microsecond=0):
        parameters += f";X-LODGER-START={_written(rule._dtstart)}"
    return f"{parameters}:{';'.join(parts)}"


def _until(until: datetime, start: datetime) -> str:
    if until.tzinfo is None or until.tzinfo is start.tzinfo:  # the wall clocks are compared
        return f"{_written(until)}{'Z' if _zone_of(until) == 'UTC' else ''}"
    return f"{_written(until.astimezone(UTC))}Z"


def _existing(rule: Any, name: str, low: int, high: int, *, signed: bool = False) -> list[int]:
    """Values of a part that can happen; dateutil keeps the others and never meets them."""
    given = sorted(getattr(rule, name) or ())
    found = [each for each in given if low <= (abs(each) if signed else each) <= high]
    if given and not found:
        raise RuleInvalid("dateutil_unreadable.part", part=name[1:].upper())
    return found


def _month_days(rule: Any) -> list[int]:
    given = [*(rule._bymonthday or ()), *(rule._bynmonthday or ())]
    found = [each for each in given if 1 <= abs(each) <= 31]
    if given and not found:
        raise RuleInvalid("dateutil_unreadable.monthday")
    return found


def _weekdays(rule: Any) -> list[str]:
    plain, numbered = set(rule._byweekday or ()), sorted(rule._bynweekday or ())
    if numbered:
        # dateutil keeps the days that are in both lists, the RFC those in either.
        kept = [(day, number) for day, number in numbered if (not plain or day in plain) and 1 <= abs(number) <= 53]
        if not kept:
            raise RuleInvalid("dateutil_unreadable.weekdays")
        return [f"{number}{WEEKDAYS[day]}" for day, number in kept]
    return [WEEKDAYS[day] for day in sorted(plain)]

"""python-dateutil ``rrule`` and ``rruleset`` objects as input: read into the text that has the same slots.

dateutil fills in what a rule lacks when the object is made, and those filled values are what is read; so an object
keeps its own meaning where dateutil and the RFC differ. Two faults of dateutil are not copied: BYSETPOS over the rest
of a first week, and week 53 that reaches into January. dateutil itself is never imported.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from typing import Any

from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.rrule.part_parser import WEEKDAYS
from lodger.engine.recurrence.rrule.parts import Freq
from lodger.engine.recurrence.rule import Kind, RuleSpec
from lodger.engine.recurrence.zones import zone_names


def from_dateutil(rule: object) -> RuleSpec:
    """Read an ``rrule`` or ``rruleset`` object.

    Raises:
        RuleInvalid: ``dateutil_unreadable`` for what has no text: BYEASTER, a zone without IANA name, rules of one
            set with different starts; ``TypeError`` is never raised for foreign objects.
    """
    if hasattr(rule, "_freq") and hasattr(rule, "_dtstart"):
        return RuleSpec(_set_text(rule._dtstart, [rule], [], [], []), Kind.RRULE)
    names = ("_rrule", "_rdate", "_exrule", "_exdate")
    if not all(isinstance(getattr(rule, name, None), list) for name in names):
        raise _unreadable(f"{type(rule).__name__} is neither an rrule nor an rruleset")
    rules, rdates, exrules, exdates = (getattr(rule, name) for name in names)
    starts = {each._dtstart for each in [*rules, *exrules]}
    if len(starts) > 1:
        raise _unreadable("the rules of the set have different starts", "give each rule as its own RuleSpec")
    if not starts and not rdates:
        raise _unreadable("the set is empty", "add a rule or a date")
    start = starts.pop() if starts else min(rdates)
    return RuleSpec(_set_text(start, rules, rdates, exrules, exdates), Kind.RRULE)


def _unreadable(what: str, fix: str = "write the rule as text") -> RuleInvalid:
    return RuleInvalid("dateutil_unreadable", what, why="the object has no exact RFC 5545 text", fix=fix)


def _set_text(
    start: datetime, rules: list[Any], rdates: list[datetime], exrules: list[Any], exdates: list[datetime]
) -> str:
    lines = [f"DTSTART{_moment(start)}"]
    lines += [f"RRULE:{_parts(each)}" for each in rules]
    lines += [f"RDATE{_moment(each)}" for each in rdates]
    lines += [f"EXRULE:{_parts(each)}" for each in exrules]
    lines += [f"EXDATE{_moment(each)}" for each in exdates]
    return "\n".join(lines)


def _moment(moment: datetime) -> str:
    local = moment.strftime("%m%dT%H%M%S")
    if moment.tzinfo is None:
        return f":{moment.year:04}{local}"
    name = _zone_name(moment.tzinfo, moment)
    return f":{moment.year:04}{local}Z" if name == "UTC" else f";TZID={name}:{moment.year:04}{local}"


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
    raise _unreadable(f"{zone!r} has no IANA name", "use zoneinfo.ZoneInfo or UTC")


def _parts(rule: Any) -> str:  # noqa: ANN401 - an object of a library that has no types
    if rule._byeaster:
        raise _unreadable("BYEASTER is not supported", "list the dates with RDATE")
    freq = Freq(rule._freq)
    parts = [f"FREQ={freq.name}", f"INTERVAL={rule._interval}", f"WKST={WEEKDAYS[rule._wkst]}"]
    if rule._count is not None:
        parts.append(f"COUNT={rule._count}")
    if rule._until is not None:
        until: datetime = rule._until
        if until.tzinfo is not None:
            until = until.astimezone(UTC)
        parts.append(f"UNTIL={until.year:04}{until:%m%dT%H%M%S}{'Z' if until.tzinfo else ''}")
    plain, numbered = set(rule._byweekday or ()), sorted(rule._bynweekday or ())
    if plain and numbered:  # dateutil keeps the days that are in both lists, the RFC those in either
        numbered = [(day, number) for day, number in numbered if day in plain]
        plain = set()
        if not numbered:
            raise _unreadable("no weekday of the rule is both plain and numbered, so it never fires")
    days = [WEEKDAYS[day] for day in sorted(plain)]
    days += [f"{number}{WEEKDAYS[day]}" for day, number in numbered]
    if not days and freq is Freq.YEARLY and rule._byweekno and not _any(rule._bymonthday, rule._bynmonthday):
        days = list(WEEKDAYS)  # dateutil means the whole week where the RFC derives the day from DTSTART
    month_days = [*(rule._bymonthday or ()), *(rule._bynmonthday or ())]
    lists: list[tuple[str, Iterable[Any]]] = [
        ("BYMONTH", rule._bymonth or ()),
        ("BYWEEKNO", rule._byweekno or ()),
        ("BYYEARDAY", rule._byyearday or ()),
        ("BYMONTHDAY", month_days),
        ("BYDAY", days),
        ("BYHOUR", _sorted(rule._byhour)),
        ("BYMINUTE", _sorted(rule._byminute)),
        ("BYSECOND", _sorted(rule._bysecond)),
        ("BYSETPOS", rule._bysetpos or ()),
    ]
    parts += [f"{name}={text}" for name, values in lists if (text := ",".join(str(each) for each in values))]
    return ";".join(parts)


def _any(*values: Iterable[int] | None) -> bool:
    return any(tuple(each or ()) for each in values)


def _sorted(values: Iterable[int] | None) -> list[int]:
    return sorted(values or ())

"""Objects of python-dateutil as rules: the text of an ``rrule`` or ``rruleset``, which is then read by RFC 5545.

An object with a meaning that RFC 5545 does not have is refused. dateutil is imported by the code that makes such objects, not here.
"""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from typing import Any

from lodger.engine.recurrence.calendar.zones import zone_names
from lodger.engine.recurrence.rrule.part_parser import WEEKDAYS
from lodger.engine.recurrence.rrule.parts import Freq
from lodger.engine.recurrence.rule import Kind, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid


def is_dateutil(value: object) -> bool:
    """Whether a value is a rule or a set of python-dateutil; its class is known only if its module was imported."""
    module = sys.modules.get("dateutil.rrule")
    return module is not None and isinstance(value, module.rrulebase)


def from_dateutil(rule: Any) -> RuleSpec:
    """Return the text of an ``rrule`` or ``rruleset`` object.

    Local times are on the wall clock of the object's zone; those of an object without a zone are on that of the schedule.

    Raises:
        RuleInvalid: ``dateutil_unreadable`` if RFC 5545 has no text with the same meaning.
    """
    if not is_dateutil(rule):
        raise RuleInvalid("dateutil_unreadable.kind", type=type(rule).__name__)
    if hasattr(rule, "_freq"):
        return _spec(rule._dtstart, [rule], [], [], [])
    rules, rdates, exrules, exdates = (
        list(getattr(rule, f"_{name}")) for name in ("rrule", "rdate", "exrule", "exdate")
    )
    for each in (*rules, *exrules):
        if not hasattr(each, "_freq"):
            raise RuleInvalid("dateutil_unreadable.nested")
    starts = [each._dtstart for each in (*rules, *exrules)]
    if len({_zone_of(start) for start in starts}) > 1:
        raise RuleInvalid("dateutil_unreadable.zones")
    if not rules and not rdates:
        raise RuleInvalid("dateutil_unreadable.empty")
    return _spec(starts[0] if starts else min(rdates), rules, rdates, exrules, exdates)


def _spec(
    start: datetime, rules: Iterable[Any], rdates: list[datetime], exrules: Iterable[Any], exdates: list[datetime]
) -> RuleSpec:
    """Return the recurrence set that the rules and dates of dateutil objects mean."""
    lines = [f"DTSTART{_moment(start)}"]
    lines += [f"RRULE{_line(each, start)}" for each in rules]
    lines += [f"RDATE{_moment(each)}" for each in rdates]
    lines += [f"EXRULE{_line(each, start)}" for each in exrules]
    lines += [f"EXDATE{_moment(each)}" for each in exdates]
    return RuleSpec("\n".join(lines), Kind.RRULE)


def _written(moment: datetime) -> str:
    """Return the wall-clock reading of a moment as YYYYMMDDTHHMMSS; raises RuleInvalid if it has microseconds."""
    if moment.microsecond:
        raise RuleInvalid("dateutil_unreadable.microseconds", moment=moment)
    return f"{moment.year:04}{moment:%m%dT%H%M%S}"


def _moment(moment: datetime) -> str:
    """Return a moment as a property's parameters and value in iCalendar, with its zone."""
    name = _zone_of(moment)
    if name is None:
        return f":{_written(moment)}"
    return f":{_written(moment)}Z" if name == "UTC" else f";TZID={name}:{_written(moment)}"


def _zone_of(moment: datetime) -> str | None:
    """Return the name of a moment's zone; None without one."""
    return None if moment.tzinfo is None else _zone_name(moment.tzinfo, moment)


def _zone_name(zone: tzinfo, moment: datetime) -> str:
    """Return the IANA name of a zone of dateutil or zoneinfo; raises RuleInvalid if it has none."""
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
    """Return the parameters and the value of one rule: dateutil's own text of it, with UNTIL in its zone."""
    _, _, value = str(rule).rpartition("RRULE:")
    parts = [part for part in value.split(";") if not part.startswith("UNTIL=")]
    names = {part.partition("=")[0] for part in parts}
    if rule._until is not None:
        if rule._count is not None:
            raise RuleInvalid("dateutil_unreadable.count_and_until")
        parts.append(f"UNTIL={_until(rule._until, rule._dtstart)}")
    if rule._byweekday and rule._bynweekday:
        raise RuleInvalid("dateutil_unreadable.weekdays")
    if rule._freq == Freq.WEEKLY and "BYSETPOS" in names and rule._dtstart.weekday() != rule._wkst:
        raise RuleInvalid("dateutil_unreadable.first_week")
    if "BYWEEKNO" in names and rule._freq < Freq.DAILY and not names & {"BYDAY", "BYMONTHDAY", "BYYEARDAY"}:
        # A whole week; RFC 5545 would take the weekday of DTSTART.
        parts.append(f"BYDAY={','.join(WEEKDAYS)}")
    same = rule._dtstart.replace(microsecond=0) == start.replace(microsecond=0)
    parameter = "" if same else f";X-LODGER-START={_written(rule._dtstart)}"
    return f"{parameter}:{';'.join(parts)}"


def _until(until: datetime, start: datetime) -> str:
    """Return the end of a rule in the form of iCalendar."""
    if until.tzinfo is None or until.tzinfo is start.tzinfo:  # the wall clocks are compared
        return f"{_written(until)}{'Z' if _zone_of(until) == 'UTC' else ''}"
    return f"{_written(until.astimezone(UTC))}Z"

"""The rule builder: what its fields say as rules, and rules as its fields.

It says rules as an interval, as days and times, or as text. Each answer to its form fills in the ways that are not the chosen one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lodger.engine.core.serialization import adapter, to_jsonable
from lodger.engine.recurrence.calendar.dial import members
from lodger.engine.recurrence.cron.parser import DAY, HOUR, MINUTE, WEEKDAY
from lodger.engine.recurrence.rule import RuleSpec, ScheduleRules
from lodger.engine.recurrence.rule_errors import RuleInvalid

Values = dict[str, Any]
#: What the names of the builder's fields begin with.
PREFIX = "rule."
#: The fields of a new schedule's rules.
NEW: Values = {
    "step": "interval", "every": "15", "unit": "min", "weekday": (), "monthdays": "", "time": ("09:00",), "text": "",
    "tz": "UTC", "exclusions": "", "known": None,
}  # fmt: skip
_UNITS = {"s": "s", "m": "min", "h": "h", "d": "d"}
_INTERVAL = re.compile(r"@?every[ \t]+([0-9]+)[ \t]*(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)", re.IGNORECASE)
_DAYS = re.compile(
    r"([0-9]+)[ \t]+([0-9,-]+)[ \t]+(\*|[0-9L,-]+)[ \t]+\*[ \t]+(\*|[a-z0-9,-]+)", re.IGNORECASE | re.ASCII
)
_TIME = re.compile("([0-9]{2}):([0-9]{2})")
#: Several rules as one text: an RRULE set has line breaks of its own, so an empty line separates two rules.
_BETWEEN = re.compile(r"\n[ \t]*\n")


def fields_of(rules: ScheduleRules | None) -> Values:
    """Return the builder's fields for the rules of a schedule, in the simplest way that can say them; None is a new schedule."""
    if rules is None:
        return NEW
    known = {"known": to_jsonable(rules), "tz": rules.tz or "UTC", "exclusions": _joined(rules.exclusions), "step": ""}
    return _in_each_way(NEW | known, rules.rules)


def typed(pairs: Sequence[tuple[str, str]]) -> tuple[Values, Values] | None:
    """Return the rules that a form's builder says, as the API takes them, and its fields with all ways filled in; None without one.

    Raises:
        ValueError: the fields are none of the builder's.
    """
    found = {name.removeprefix(PREFIX): text for name, text in pairs if name.startswith(PREFIX)}
    if not found:
        return None
    lists = {each: tuple(text for name, text in pairs if name == PREFIX + each) for each in ("weekday", "time")}
    fields = NEW | found | lists
    known = adapter(ScheduleRules | None).validate_json(fields["known"] or "null")
    own = known or ScheduleRules(())
    ways = {"interval": [f"every {fields['every'] or 0} {fields['unit']}"], "days": _cron(fields)}
    texts = ways.get(fields["step"], _split(fields["text"]))
    rules, exclusions = _kept(texts, own.rules), _kept(_split(fields["exclusions"]), own.exclusions)
    tz = fields["tz"].strip() or "UTC"
    said = to_jsonable(replace(own, rules=rules, exclusions=exclusions, tz=tz))
    body = {name: value for name, value in said.items() if value is not None}
    return body, _in_each_way(fields | {"known": known and to_jsonable(known)}, rules)


def place(problem: Mapping[str, Any], body: Values, step: str) -> Values:
    """Return the builder's field that a problem is about, and the text with the mistake; nothing if it is about another field."""
    code, rule, index = problem["code"], problem.get("rule"), problem.get("index")
    if "zone" in code:
        return {"place": f"{PREFIX}tz"}
    if rule is None and index is None and not re.search("rule|interval", code):
        return {}
    texts = [each["text"] for each in (*body["rules"], *body["exclusions"])]
    number = rule or 0
    of_step = {"interval": "every", "days": "monthdays" if texts else "time"}
    name = "exclusions" if number >= len(body["rules"]) > 0 else of_step.get(step, "text")
    return {"place": PREFIX + name, "text": texts[number] if number < len(texts) else ""}


def _split(text: str) -> list[str]:
    """Return the rules in a text."""
    return [each.strip() for each in _BETWEEN.split(text) if each.strip()]


def _joined(rules: Iterable[RuleSpec]) -> str:
    """Return rules as one text."""
    return "\n\n".join(each.text for each in rules)


def _kept(texts: Iterable[str], own: Iterable[RuleSpec]) -> tuple[RuleSpec, ...]:
    """Return texts as rules: a schedule's own rules where these are unchanged."""
    known = {each.text.strip(): each for each in own}
    return tuple(known.get(text) or RuleSpec(text=text) for text in texts)


def _cron(fields: Values) -> list[str]:
    """Return the rules of the fields of days and times: one for each minute of the hour."""
    days = [each for each in re.split(r"[\s,]+", fields["monthdays"]) if each]
    monthdays = ",".join("L" if each.lower() == "last" else each for each in days) or "*"
    weekdays = ",".join(sorted(fields["weekday"])) or "*"
    hours: dict[int, set[int]] = {}
    for time in filter(None, map(_TIME.match, fields["time"])):
        hours.setdefault(int(time[2]), set()).add(int(time[1]))
    days_of = f"{monthdays} * {'1-5' if weekdays == '1,2,3,4,5' else weekdays}"
    return [f"{minute} {','.join(map(str, sorted(found)))} {days_of}" for minute, found in sorted(hours.items())]


def _in_each_way(fields: Values, rules: Sequence[RuleSpec]) -> Values:
    """Return fields with the rules in each way that can say them and is not the chosen one; without one, the simplest is."""
    ways = {"interval": _as_interval(rules), "days": _as_days(rules), "text": {"text": _joined(rules)}}
    chosen = fields["step"] or next(name for name, way in ways.items() if way)
    for name, way in ways.items():
        fields = fields | way if way and name != fields["step"] else fields
    return fields | {"step": chosen}


def _as_interval(rules: Sequence[RuleSpec]) -> Values:
    """Return the fields of the interval that rules are; nothing if they are none."""
    found = _INTERVAL.fullmatch(rules[0].text.strip()) if len(rules) == 1 else None
    return {"every": found[1], "unit": _UNITS[found[2][0].lower()]} if found else {}


def _as_days(rules: Sequence[RuleSpec]) -> Values:
    """Return the fields of the days and times that rules are; nothing if they are none."""
    found = [each for rule in rules if not rule.dtstart and (each := _DAYS.fullmatch(rule.text.strip()))]
    days = {(each[3].upper(), each[4].upper()) for each in found}
    # In cron, days of the month and of the week together mean either: that is shown as text.
    if len(found) != len(rules) or len(days) != 1 or "*" not in next(iter(days)):
        return {}
    ((monthdays, weekdays),) = days
    numbers = ",".join(each for each in monthdays.split(",") if each != "L")
    try:
        times = {
            f"{hour:02}:{minute:02}"
            for each in found
            for hour in members(HOUR.set_of(each[2], 0))
            for minute in members(MINUTE.set_of(each[1], 0))
        }
        of_week = () if weekdays == "*" else members(WEEKDAY.set_of(weekdays, 0))
        of_month = () if numbers in {"", "*"} else members(DAY.set_of(numbers, 0))
    except RuleInvalid:
        return {}
    last = ["last"] if "L" in monthdays else []
    return {
        "weekday": tuple(str(each % 7) for each in of_week),
        "monthdays": ", ".join([*map(str, of_month), *last]),
        "time": tuple(sorted(times)),
    }

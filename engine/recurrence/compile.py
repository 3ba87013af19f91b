"""Compile the stored rules of a schedule to a Recurrence."""

from dataclasses import replace
from datetime import datetime

from lodger.engine.recurrence.calendar.zones import known_zone
from lodger.engine.recurrence.on_changes import OnChanges
from lodger.engine.recurrence.parse import kind_of, parse_days, parse_rule, resolved, takes_dtstart
from lodger.engine.recurrence.rrule import of_set, parse_set
from lodger.engine.recurrence.rule import DstPolicy, Kind, RuleSpec, ScheduleRules
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.schedule import CompiledSchedule, Windows

MAX_RULES = 32


def compile_schedule(rules: ScheduleRules, *, now: datetime | None = None) -> CompiledSchedule:
    """Make the Recurrence of a schedule; each text is parsed once.

    Args:
        rules: rules, exclusions, zone and bounds.
        now: aware instant from which ``in 90s`` counts; nothing else looks at it.

    Raises:
        RuleInvalid: a text is not a rule, with the position; ``details["rule"]`` is its 0-based index among the rules and
            then the exclusions.
    """
    if not rules.rules:
        raise RuleInvalid("schedule_empty")
    if len(rules.rules) + len(rules.exclusions) > MAX_RULES:
        raise RuleInvalid("schedule_too_large", maximum=MAX_RULES)
    for name, bound in (("start", rules.start), ("end", rules.end)):
        if bound is not None and bound.tzinfo is None:
            raise RuleInvalid("bound_naive", name=name)
    included, excluded = [], []
    for i, spec in enumerate((*rules.rules, *rules.exclusions)):
        try:
            if i < len(rules.rules):
                included.append(parse_rule(spec, default_tz=rules.tz, dst=rules.dst, now=now))
            else:
                excluded.append(windows_of(spec, default_tz=rules.tz, dst=rules.dst, now=now))
        except RuleInvalid as error:
            error.details["rule"] = i
            raise
    if rules.end is not None and any(isinstance(rule, OnChanges) for rule in included):
        raise RuleInvalid("changes_end")
    return CompiledSchedule(included, excluded, start=rules.start, end=rules.end)


def windows_of(
    spec: RuleSpec, *, default_tz: str | None = None, dst: DstPolicy | None = None, now: datetime | None = None
) -> Windows:
    """Return the windows of time that an exclusion's text means.

    Raises:
        RuleInvalid: the text is not a rule.
    """
    tz = spec.tz if spec.tz is not None else default_tz
    kind = kind_of(spec)
    if kind is Kind.CHANGES:
        raise RuleInvalid("changes_excluded", index=0)
    if kind is Kind.RRULE:
        read = parse_set(spec.text, spec.dtstart, tz)
        if length := read.duration:
            return Windows(of_set(read, dst), days=length.days, seconds=length.seconds, zone=read.zone)
        if read.names_days():  # a date is meant even when DST skips its midnight, so the policy does not apply
            return Windows(of_set(read), days=1, zone=read.zone, to_midnight=True)
        return Windows(of_set(read, dst))
    if days := parse_days(spec, default_tz=tz):
        return Windows(days[0], days=1, zone=days[1], to_midnight=True)
    return Windows(parse_rule(spec, default_tz=default_tz, dst=dst, now=now))


def refuse_unused_starts(rules: ScheduleRules) -> None:
    """Refuse rules of a client that have a start beside their text that changes nothing; stored ones that have it run on.

    Raises:
        RuleInvalid: ``dtstart_unused``, with the rule's index as ``details["rule"]``; or a text is not a rule.
    """
    for i, spec in enumerate((*rules.rules, *rules.exclusions)):
        if spec.dtstart is not None and not takes_dtstart(spec):
            error = RuleInvalid("dtstart_unused", kind=kind_of(spec))
            error.details["rule"] = i
            raise error


def with_present_starts(rules: ScheduleRules, present: ScheduleRules) -> ScheduleRules:
    """Return rules in which a rule that is given again keeps the start that it has among the present ones."""

    def with_present_start(spec: RuleSpec, among: tuple[RuleSpec, ...]) -> RuleSpec:
        """Return a rule as it is among the present ones, whose start it keeps; unchanged if it is new."""
        return next((each for each in among if spec in (each, replace(each, counted_from=None))), spec)

    included, excluded = (
        tuple(with_present_start(spec, among) for spec in specs)
        for specs, among in ((rules.rules, present.rules), (rules.exclusions, present.exclusions))
    )
    return replace(rules, rules=included, exclusions=excluded)


def with_absolute_times(rules: ScheduleRules, anchor: datetime) -> ScheduleRules:
    """Return rules that are independent of the time of reading, with the IANA name of their zone.

    ``in 3 days`` becomes an instant, and an interval without a start counts from the schedule's start or else the anchor.
    """
    tz = rules.tz if rules.tz is None else known_zone(rules.tz) or rules.tz
    included, excluded = (
        tuple(resolved(spec, anchor, tz=tz, start=rules.start) for spec in specs)
        for specs in (rules.rules, rules.exclusions)
    )
    return replace(rules, rules=included, exclusions=excluded, tz=tz)

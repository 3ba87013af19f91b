"""RFC 5545 recurrence sets as wall-clock sequences that seek; it must never walk from DTSTART to answer."""

from dataclasses import replace

from lodger.engine.recurrence.rrule.dateutil_input import from_dateutil
from lodger.engine.recurrence.rrule.parser import RuleSet, parse_set
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rule import DstPolicy
from lodger.engine.recurrence.zoned import Zoned

__all__ = ["from_dateutil", "parse"]


def parse(text: str, *, dtstart: str | None = None, tz: str | None = None, dst: DstPolicy | None = None) -> Zoned:
    """Read a recurrence set and put it under its zone.

    Args:
        text: DTSTART, RRULE, RDATE, EXDATE, EXRULE lines (RFC 5545 §3.8.5), or one bare rule.
        dtstart: anchor when the text has none: RFC 5545 or ISO, an instant when it ends in Z or an offset.
        tz: IANA zone of local times when the text names none; None is UTC.
        dst: what gaps and folds do; absent fields take the language's default.

    Raises:
        RuleInvalid: with code, reason, cure and position.
    """
    rules = parse_set(text, dtstart, tz)
    rules, last = _exact_until(rules)
    sequence = SetSequence(rules)
    if rules.exrules:
        from lodger.engine.recurrence.rrule.openness import demand_open

        demand_open(sequence)
    return Zoned(sequence, rules.zone, dst, last=last)


def _exact_until(rules: RuleSet) -> tuple[RuleSet, int | None]:
    """A UTC UNTIL inside a fold, where the wall clock cannot tell the two passes apart: the UTC second that ends the set.

    Only for a set of one rule and no RDATE; in others UNTIL is what the wall clock shows at that instant.
    """
    if len(rules.rules) != 1 or rules.rdates:
        return rules, None
    rule, _ = rules.rules[0]
    if rule.until is None or not rule.until.utc:
        return rules, None
    last = rule.until.second
    here = rules.zone.segment(last)
    if len(rules.zone.instants(last + here.offset)) < 2:
        return rules, None
    shown = last + here.offset
    if here.before > here.offset and last < here.start + here.before - here.offset:
        shown = here.start + here.before - 1  # in the second pass all of the first is over
    return replace(rules, rules=((rule, shown),)), last

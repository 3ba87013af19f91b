"""RFC 5545 recurrence sets as wall-clock sequences that seek; it must never walk from DTSTART to answer."""

from dataclasses import replace

from lodger.engine.recurrence.calendar.civil import instant_of
from lodger.engine.recurrence.calendar.zoned import Zoned
from lodger.engine.recurrence.once import Instants
from lodger.engine.recurrence.rrule.dateutil_input import from_dateutil, is_dateutil
from lodger.engine.recurrence.rrule.parser import Entry, RuleSet, parse_set
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rule import DstPolicy, Recurrence
from lodger.engine.recurrence.union import Parts

__all__ = ["from_dateutil", "is_dateutil", "of_set", "parse", "parse_set"]


def parse(
    text: str, *, dtstart: str | None = None, tz: str | None = None, dst: DstPolicy | None = None
) -> Zoned | Parts:
    """Read a recurrence set and put it under its zone.

    Args:
        text: DTSTART, RRULE, RDATE, EXDATE, EXRULE lines (RFC 5545 §3.8.5), or one bare rule.
        dtstart: anchor when the text has none: RFC 5545 or ISO, an instant when it ends in Z or an offset.
        tz: IANA zone of local times when the text names none; None is UTC.
        dst: policy for gaps and folds; absent fields take the language's default.

    Raises:
        RuleInvalid: with code, reason, cure and position.
    """
    return of_set(parse_set(text, dtstart, tz), dst)


def of_set(rules: RuleSet, dst: DstPolicy | None = None) -> Zoned | Parts:
    """Return a parsed recurrence set as a recurrence under its zone and DST policy."""
    whole = SetSequence(rules)
    lasts = {entry.last for entry in rules.rules}
    if lasts <= {None} and not rules.also:
        return Zoned(whole, rules.zone, dst, without=rules.without)
    # A moment in UTC that the wall clock shows twice: it ends its own rule, and is one slot, on the pass that it names.
    default, asked = whole.default_dst(), dst or DstPolicy()
    policy = DstPolicy(asked.gap or default.gap, asked.fold or default.fold)
    parts: list[Recurrence] = []
    for last in sorted(lasts, key=lambda last: (last is not None, last or 0)):
        entries: list[Entry] = [entry for entry in rules.rules if entry.last == last]
        there = SetSequence(replace(rules, rdates=set()), entries)
        parts.append(Zoned(there, rules.zone, policy, last=last, without=rules.without))
    if rules.rdates:
        parts.append(Zoned(SetSequence(rules, ()), rules.zone, policy, without=rules.without))
    also = [instant_of(utc) for utc in sorted(rules.also) if utc not in rules.without]
    if also:
        parts.append(Instants(also))
    return Parts(Zoned(whole, rules.zone, dst), parts)

"""RFC 5545 recurrence sets as wall-clock sequences that seek; it must never walk from DTSTART to answer."""

from lodger.engine.recurrence.civil import instant_of
from lodger.engine.recurrence.rrule.parser import Entry, parse_set
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rule import DstPolicy, Recurrence, RuleSpec
from lodger.engine.recurrence.zoned import Zoned

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without importing typing
if TYPE_CHECKING:
    from lodger.engine.recurrence.mixed import Mixed

__all__ = ["from_dateutil", "parse"]


def parse(
    text: str, *, dtstart: str | None = None, tz: str | None = None, dst: DstPolicy | None = None
) -> "Zoned | Mixed":
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
    lasts = {entry.last for entry in rules.rules}
    if lasts <= {None} and not rules.also:
        return Zoned(SetSequence(rules), rules.zone, dst, without=rules.without)
    from lodger.engine.recurrence.instants import Instants
    from lodger.engine.recurrence.mixed import Mixed

    # A moment in UTC that the wall clock shows twice: it ends its own rule, and is one slot, on the pass that it names.
    whole = SetSequence(rules)
    default, asked = whole.default_dst(), dst or DstPolicy()
    policy = DstPolicy(asked.gap or default.gap, asked.fold or default.fold)
    parts: list[Recurrence] = []
    for last in sorted(lasts, key=lambda last: (last is not None, last or 0)) or [None]:
        entries: list[Entry] = [entry for entry in rules.rules if entry.last == last]
        there = SetSequence(rules, entries) if last is None else SetSequence(rules.without_dates(), entries)
        parts.append(Zoned(there, rules.zone, policy, last=last, without=rules.without))
    if lasts and None not in lasts and rules.rdates:
        parts.append(Zoned(SetSequence(rules, ()), rules.zone, policy, without=rules.without))
    also = [instant_of(utc) for utc in rules.also if utc not in rules.without]
    if also:
        parts.append(Instants(also))
    return Mixed(Zoned(whole, rules.zone, dst), parts)


def from_dateutil(rule: object) -> RuleSpec:
    """Read an ``rrule`` or ``rruleset`` object of python-dateutil into the text that has the same slots.

    Local times are wall-clock times of the object's zone, as dateutil counts them; one that DST skips is read with the
    offset before the gap.

    Raises:
        RuleInvalid: ``dateutil_unreadable`` for what has no text: BYEASTER, a zone without IANA name, rules of one
            set in different zones, a rule that never fires because no value of a part exists.
    """
    from lodger.engine.recurrence.rrule.dateutil_input import from_dateutil as read

    return read(rule)

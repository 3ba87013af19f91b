"""The proof, when a set is read, that its EXRULEs leave it members at short distances, or none at all."""

from collections.abc import Iterator
from itertools import islice

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.coverage import MOST_IN_A_ROW, instants, verdict
from lodger.engine.recurrence.pattern import of_rules
from lodger.engine.recurrence.rrule.faults import fault
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rrule.sequence import RuleSequence

#: Members that an EXRULE may have in all without being looked at any further.
_FEW = 500
#: Members of the set's rules that are walked through when nothing is proved on patterns.
_WALKED = 20_000


def demand_open(members: SetSequence) -> None:
    """Mark a set without members as closed; refuse one of which nothing is proved.

    Raises:
        RuleInvalid: ``exceptions_too_dense``.
    """
    rules = [rule for rule in members.included if rule.next_local(civil.MIN_LOCAL) is not None]
    lasting = [rule for rule in members.excepted if not _is_few(rule)]
    if not lasting or not rules:
        return
    covers = [instants(pattern) for pattern in of_rules(lasting)]
    found = [verdict(pattern, covers) for pattern in of_rules(rules)]
    if all(each is True for each in found):
        return
    if all(each is not None and each is not True for each in found) and not members.dates:
        # EXRULEs begin where the set's rules begin, at DTSTART.
        members.closed = True
    elif not _walked(members, rules):
        raise fault(
            "exceptions_too_dense",
            "EXRULE removes so many slots one after another that the next free one cannot be found in bounded work",
            0,
        )


def _is_few(rule: RuleSequence) -> bool:
    return rule.ends() and len(list(islice(_members(rule), _FEW))) < _FEW


def _walked(members: SetSequence, rules: list[RuleSequence]) -> bool:
    """Whether every run of excluded slots up to the end of time is short."""
    for rule in rules:
        row = 0
        for at, local in enumerate(_members(rule)):
            row = row + 1 if any(each.next_local(local, inclusive=True) == local for each in members.excepted) else 0
            if row > MOST_IN_A_ROW or at > _WALKED:
                return False
    return True


def _members(rule: RuleSequence) -> Iterator[int]:
    local = rule.next_local(civil.MIN_LOCAL, inclusive=True)
    while local is not None:
        yield local
        local = rule.next_local(local)

"""Schyntax (spec 1.0.1) as a sequence of local times; it knows nothing of zones, instants or the clock.

Lexer → parser → validator give the model; compiling folds it into sets of times and of days; the rule
answers.
"""

from lodger.engine.recurrence.groups import GroupedRule
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.schyntax.model import Unit
from lodger.engine.recurrence.schyntax.parser import read
from lodger.engine.recurrence.schyntax.rule import compiled


def parse(text: str) -> GroupedRule:
    """Read a Schyntax schedule; RuleInvalid carries the 0-based index of the mistake."""
    return compiled(read(text))


def names_days(text: str) -> bool:
    """Whether a schedule names days and no times of day; raises RuleInvalid when only some of its groups name times."""
    timed = [any(each.unit in (Unit.HOURS, Unit.MINUTES, Unit.SECONDS) for each in group) for group in read(text)]
    if any(timed) and not all(timed):
        raise RuleInvalid("exclusion_mixed", index=0)
    return not any(timed)


__all__ = ["names_days", "parse"]

"""Schyntax (spec 1.0.1) as a sequence of local times; it knows nothing of zones, instants or the clock.

Lexer → parser → validator give the model; compiling folds it into sets of times and of days; the rule
answers.
"""

from lodger.engine.recurrence.groups import GroupedRule
from lodger.engine.recurrence.schyntax.parser import read
from lodger.engine.recurrence.schyntax.rule import compiled


def parse(text: str) -> GroupedRule:
    """Read a Schyntax schedule; RuleInvalid carries the 0-based index of the mistake."""
    return compiled(read(text))


__all__ = ["parse"]

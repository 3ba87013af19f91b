"""Schyntax (spec 1.0.1) as a sequence of local times; it knows nothing of zones, instants or the clock.

Lexer → parser → validator give the model; compiling folds it into sets of times and of days; the rule
answers.
"""

from lodger.engine.recurrence.schyntax.parser import read
from lodger.engine.recurrence.schyntax.rule import SchyntaxRule, compiled


def parse(text: str) -> SchyntaxRule:
    """Read a Schyntax schedule; RuleInvalid carries the 0-based index of the mistake."""
    return compiled(read(text))


__all__ = ["SchyntaxRule", "parse"]

"""Schyntax (spec 1.0.1) as a sequence of local times; it knows nothing of zones, instants or the clock.

Lexer → parser → validator give the model; compiling folds it into sets of times and of days; the rule
answers.
"""

from lodger.engine.recurrence.calendar.zoned import Zoned
from lodger.engine.recurrence.calendar.zones import Zone
from lodger.engine.recurrence.rule import DstPolicy
from lodger.engine.recurrence.schyntax.parser import read
from lodger.engine.recurrence.schyntax.rule import SchyntaxRule, compiled
from lodger.engine.recurrence.union import Parts


def parse(text: str) -> SchyntaxRule:
    """Read a Schyntax schedule; RuleInvalid carries the 0-based index of the mistake."""
    return compiled(read(text))


def zoned(rule: SchyntaxRule, zone: Zone, dst: DstPolicy) -> Zoned | Parts:
    """Put a schedule under its zone, each group with the DST default of its own granularity.

    ``{h(9)} {m(*%5)}`` has a group that fires once a day at a fixed hour and one that runs by the clock: in the repeated
    hour the second goes on and the first does not, so they are two wall-clock rules and one sentence. A policy that leaves
    nothing open makes the split pointless.
    """
    parts = rule.by_granularity()
    if len(parts) < 2 or (dst.gap is not None and dst.fold is not None):
        return Zoned(rule, zone, dst)
    return Parts(Zoned(rule, zone, dst), tuple(Zoned(part, zone, dst) for part in parts))


__all__ = ["SchyntaxRule", "parse", "zoned"]

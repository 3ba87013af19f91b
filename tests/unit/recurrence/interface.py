"""The one interface of all rules."""

from lodger.engine.recurrence.rule import Recurrence


def is_recurrence(rule: object) -> bool:
    """Whether it can be asked all that every rule is asked."""
    return isinstance(rule, Recurrence)

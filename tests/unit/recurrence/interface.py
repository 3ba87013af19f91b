"""The one interface of all rules, asked for at run time: the engine leaves it to the type checker."""

from lodger.engine.recurrence.rule import Recurrence

QUESTIONS = [name for name in vars(Recurrence) if not name.startswith("_")]
assert {"next_after", "previous_before", "between", "text", "proves_never", "ends", "shifted"} == {*QUESTIONS}


def is_recurrence(rule: object) -> bool:
    """Whether it can be asked all that every rule is asked."""
    return all(callable(getattr(rule, name, None)) for name in QUESTIONS)

"""``on changes of orders``: a rule without a clock. A schedule bound to it runs when something of that set has changed.

It has one slot, the last instant of the calendar, which is never run: so a schedule of such rules is armed, paused, edited and
deleted like any other.
"""

import re

from lodger.engine.recurrence.instant import LAST
from lodger.engine.recurrence.once import OnceAt
from lodger.engine.recurrence.rule import Kind, RuleSpec, ScheduleRules
from lodger.engine.recurrence.rule_errors import RuleInvalid

#: The slot that never comes.
END = LAST
_HEAD = re.compile(r"[ \t\r\n]*on[ \t]+changes[ \t]+of[ \t]+", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}", re.ASCII)


class OnChanges(OnceAt):
    """A Recurrence with :data:`END` as its only slot; ``name`` is the name of the table or collection."""

    def __init__(self, name: str) -> None:
        super().__init__(END)
        self.name = name

    def text(self) -> str:
        """Return the rule as one exact English sentence."""
        return f"On changes of {self.name}"


def parse_changes(text: str) -> OnChanges:
    """Read ``on changes of NAME``.

    Raises:
        RuleInvalid: changes_name.
    """
    head = _HEAD.match(text)
    at = head.end() if head else 0
    name = text[at:].rstrip(" \t\r\n")
    if not head or not _NAME.fullmatch(name):
        raise RuleInvalid("changes_name", name=name[:60], index=at)
    return OnChanges(name)


def named(rules: ScheduleRules) -> tuple[str, ...]:
    """Return the names of the tables and collections that a schedule is bound to, each once, in the order of its rules.

    Raises:
        RuleInvalid: changes_name.
    """
    return tuple(dict.fromkeys(parse_changes(spec.text).name for spec in rules.rules if _is(spec)))


def _is(spec: RuleSpec) -> bool:
    """Whether a rule is one on changes of a dataset."""
    return spec.kind == Kind.CHANGES or (spec.kind is None and _HEAD.match(spec.text) is not None)

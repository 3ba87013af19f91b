"""What the nouns of the engine share: an open ledger, what is called after a write, and how arguments are read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from lodger.engine.errors import InputError
from lodger.engine.ledger.books import Books
from lodger.engine.recurrence.rule import RuleSpec

#: A rule as people give it: a text, a RuleSpec, or several of them.
RuleWish = str | RuleSpec | Sequence[str | RuleSpec]

#: A script's name, or steps in order: names, or objects with ``script`` and ``limits``.
StepWish = str | Sequence[str | Mapping[str, Any]]

T = TypeVar("T")


class _Unset:
    """Says that an argument of ``edit`` was not given, where None has a meaning."""

    def __repr__(self) -> str:
        return "unchanged"


UNCHANGED: Any = _Unset()


@dataclass(frozen=True, slots=True)
class Verbs:
    """What the nouns share. ``changed`` is called after every write, so that a node in this process looks at once."""

    books: Books
    changed: Callable[[], None]

    @property
    def _now_us(self) -> int:
        return self.books.clock.now_us()

    def _done(self, answer: T) -> T:
        self.changed()
        return answer


def specs(rules: RuleWish) -> tuple[RuleSpec, ...]:
    """Give rules as RuleSpecs."""
    if isinstance(rules, str | RuleSpec):
        rules = (rules,)
    return tuple(RuleSpec(rule) if isinstance(rule, str) else rule for rule in rules)


def aware(instant: datetime | None) -> datetime | None:
    """Give an instant that has a zone, or None for None.

    Raises:
        InputError: instant_naive.
    """
    if instant is not None and instant.tzinfo is None:
        raise InputError(
            "instant_naive",
            f"{instant.isoformat()} is not an instant",
            why="it has no time zone",
            fix="give an aware datetime, such as datetime(2027, 1, 1, tzinfo=UTC)",
        )
    return instant

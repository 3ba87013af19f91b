"""Unions of recurrences: the parts of one rule, and the rules of a schedule without its exclusions."""

from collections.abc import Sequence
from datetime import datetime

from lodger.engine.recurrence.calendar.min_spacing import united
from lodger.engine.recurrence.calendar.zoned import Zoned
from lodger.engine.recurrence.calendar.zones import Zone
from lodger.engine.recurrence.groups import GroupedRule
from lodger.engine.recurrence.rule import DstPolicy, Pace, Recurrence
from lodger.engine.recurrence.search import Steps, union_of


class Union(Recurrence):
    """Slots of several rules; two rules that name one instant make one slot."""

    def __init__(self, rules: Sequence[Recurrence]) -> None:
        self.rules = tuple(rules)

    def next_from(self, instant: datetime, steps: Steps) -> datetime | None:
        """First slot at or after an instant."""
        return union_of(self.rules, instant).next_from(instant, steps)

    def text(self) -> str:
        """Return the rule as one exact English sentence."""
        first, *others = [rule.text() for rule in self.rules] or ["no rule"]
        return first + "".join(f"; and also {other[0].lower()}{other[1:]}" for other in others)

    def never_reason(self) -> str | None:
        """Reason why no slot exists, where that is known of every rule."""
        reasons = [rule.never_reason() for rule in self.rules]
        return "; ".join(dict.fromkeys(reason for reason in reasons if reason)) if all(reasons) else None

    def ends(self) -> bool:
        """Whether the slots are finite."""
        return all(rule.ends() for rule in self.rules)

    def shifted(self, slot: datetime) -> bool:
        """Whether DST moved this slot away from the local time that some rule wrote."""
        naming = [rule for rule in self.rules if rule.next_after(slot, inclusive=True) == slot]
        return bool(naming) and all(rule.shifted(slot) for rule in naming)

    @property
    def zone_key(self) -> str | None:
        """Return the zone of the first rule that has a wall clock, None if none has."""
        return next((key for rule in self.rules if (key := rule.zone_key) is not None), None)

    def pace(self) -> Pace:
        """Bounds of the distance between slots."""
        return united(rule.pace() for rule in self.rules)


class Parts(Union):
    """The parts of a rule that is one rule to its author: groups with DST defaults of their own, rules with an own UNTIL.

    Args:
        whole: the rule as it was written; it says the sentence.
        parts: what it is asked as.
    """

    def __init__(self, whole: Zoned, parts: Sequence[Recurrence]) -> None:
        super().__init__(parts)
        self._whole = whole

    def text(self) -> str:
        """Return the rule as one exact English sentence with its zone."""
        return self._whole.text()

    @property
    def zone_key(self) -> str | None:
        """Return the name of the rule's zone."""
        return self._whole.zone_key


def by_granularity(rule: GroupedRule, zone: Zone, dst: DstPolicy) -> "Zoned | Parts":
    """Put a rule under its zone, each part with the DST default of its own granularity.

    ``{h(9)} {m(*%5)}`` has a group that fires once a day at a fixed hour and one that runs by the clock: in the repeated
    hour the second goes on and the first does not, so they are two wall-clock rules and one sentence. A policy that leaves
    nothing open makes the split pointless.
    """
    kinds = ([each for each in rule.groups if each.recurring is kind] for kind in (True, False))
    parts = [GroupedRule(groups) for groups in kinds if groups]
    if len(parts) < 2 or (dst.gap is not None and dst.fold is not None):
        return Zoned(rule, zone, dst)
    return Parts(Zoned(rule, zone, dst), tuple(Zoned(part, zone, dst) for part in parts))

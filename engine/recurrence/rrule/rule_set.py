"""A recurrence set as one sequence: the union of its rules and dates, minus its exceptions."""

from collections.abc import Sequence

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.min_spacing import of_times, united
from lodger.engine.recurrence.rrule.parser import Entry, RuleSet
from lodger.engine.recurrence.rrule.parts import Freq
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.text import set_text
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Pace
from lodger.engine.recurrence.search import SAVE_STEPS, Listed, OutOfSteps, Steps, union_of
from lodger.engine.recurrence.search import Sequence as Source


class SetSequence:
    """LocalSequence of a :class:`RuleSet`, or of some of its rules."""

    def __init__(self, rules: RuleSet, entries: Sequence[Entry] | None = None) -> None:
        self._rules = rules
        self._included = _sequences(rules.rules if entries is None else entries)
        self._excepted = _sequences(rules.exrules)
        self._sources: list[Source[int]] = [*self._included]
        if rules.rdates:
            self._sources.append(Listed(rules.rdates))

    def next_from(self, local: int, steps: Steps) -> int | None:
        """First member at or after the local second."""
        union = union_of(self._sources, local)
        while (found := union.next_from(local, steps)) is not None:
            excluded_to = self._excluded_to(found)
            if excluded_to is None:
                return found
            local = excluded_to + 1
            steps.take(local)
        return None

    def _excluded_to(self, local: int) -> int | None:
        """Last second of an exception over a local second; None when there is none."""
        day = local // civil.DAY_S
        if day in self._rules.exdays:
            return (day + 1) * civil.DAY_S - 1
        excepted = local in self._rules.exdates or any(rule.contains(local) for rule in self._excepted)
        return local if excepted else None

    def never_reason(self) -> str | None:
        """Reason why there is no member, where that is known."""
        reasons = [rule.never_reason() for rule in self._included]
        if not self._rules.rdates and None not in reasons:
            return "; ".join(dict.fromkeys(reason for reason in reasons if reason))
        try:
            if self.next_from(civil.MIN_LOCAL, Steps(SAVE_STEPS)) is None:
                return "its exceptions remove every slot"
        except OutOfSteps:
            pass
        return None

    def ends(self) -> bool:
        """Whether the members are finite."""
        return all(rule.ends() for rule in self._included)

    def default_dst(self) -> DstPolicy:
        """Return the default DST policy: RFC 5545 for skipped times; what repeats within the day runs through both hours of a fold."""
        both = any(each.rule.freq >= Freq.HOURLY for each in self._included)
        return DstPolicy(Gap.SHIFT, Fold.BOTH if both else Fold.FIRST)

    def pace(self) -> Pace:
        """Bounds of the distance between members."""
        dates = sorted({local % civil.DAY_S for local in self._rules.rdates})
        return united([*(rule.pace() for rule in self._included), *([of_times(dates)] if dates else [])])

    def text(self) -> str:
        """Return the set as one exact English sentence."""
        rules = self._rules
        slots = {*rules.rdates}
        idle = [at for at in rules.exdates if at not in slots and not any(each.contains(at) for each in self._included)]
        return set_text(rules, sorted(idle))


def _sequences(entries: Sequence[Entry]) -> list[RuleSequence]:
    """Return the sequence of each entry's members."""
    return [RuleSequence(entry.rule, entry.start, entry.until) for entry in entries]

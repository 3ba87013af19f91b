"""A recurrence set as one sequence: the union of its rules and dates, minus its exceptions."""

from bisect import bisect_left, bisect_right

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.exceptions import ExceptionRule, Shape
from lodger.engine.recurrence.rrule.parser import RuleSet
from lodger.engine.recurrence.rrule.parts import Freq, Rule
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.text import set_text
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap

#: The shape of a single date: no run can be left in one step.
_NO_SHAPE = Shape(Rule(freq=Freq.SECONDLY))


class SetSequence:
    """LocalSequence of a :class:`RuleSet`."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        self._out = [ExceptionRule(RuleSequence(rule, rules.start, until)) for rule, until in rules.exrules]
        self._in = [self._included(rule, until) for rule, until in rules.rules]
        self._shapes = [Shape(rule.filled) for rule in self._in]
        self._dates = [local for local in rules.rdates if self._run(local, _NO_SHAPE) is None]
        excepts = self._out or rules.exdates or rules.exdays
        #: Whether it is proved that exceptions leave no member; no question walks through them then.
        self.closed = False
        self._sole = self._in[0] if len(self._in) == 1 and not (self._dates or excepts) else None

    def _included(self, rule: Rule, until: int | None) -> RuleSequence:
        if rule.count is None and not rule.bysetpos:
            shape = Shape(rule.filled(self.rules.start))
            removed = (each.removed_from(shape) for each in self._out)
            without = tuple(masks for masks in removed if masks is not None)
            return RuleSequence(rule, self.rules.start, until, without)
        return RuleSequence(rule, self.rules.start, until)

    @property
    def included(self) -> tuple[RuleSequence, ...]:
        """Its rules, exceptions aside."""
        return tuple(self._in)

    @property
    def excepted(self) -> tuple[RuleSequence, ...]:
        """Its EXRULEs."""
        return tuple(each.sequence for each in self._out)

    @property
    def dates(self) -> tuple[int, ...]:
        """Its RDATEs that no exception removes, ascending local seconds."""
        return tuple(self._dates)

    def next_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """First member after (or at) the local second."""
        if self._sole is not None:
            return self._sole.next_local(local, inclusive=inclusive)
        if self.closed:
            return None
        i = bisect_left(self._dates, local) if inclusive else bisect_right(self._dates, local)
        best = self._dates[i] if i < len(self._dates) else None
        # The earliest candidate of all rules is looked at first: what a later one meets may never matter.
        waiting = [
            (found, at)
            for at, rule in enumerate(self._in)
            if (found := rule.next_local(local, inclusive=inclusive)) is not None
        ]
        while True:
            if not waiting or (best is not None and min(waiting)[0] >= best):
                return best
            found, at = min(waiting)
            run = self._run(found, self._shapes[at])
            if run is None:
                return found
            waiting.remove((found, at))
            if (later := self._in[at].next_local(run[1])) is not None:
                waiting.append((later, at))

    def previous_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """Last member before (or at) the local second."""
        if self._sole is not None:
            return self._sole.previous_local(local, inclusive=inclusive)
        if self.closed:
            return None
        i = bisect_right(self._dates, local) if inclusive else bisect_left(self._dates, local)
        best = self._dates[i - 1] if i else None
        waiting = [
            (found, at)
            for at, rule in enumerate(self._in)
            if (found := rule.previous_local(local, inclusive=inclusive)) is not None
        ]
        while True:
            if not waiting or (best is not None and max(waiting)[0] <= best):
                return best
            found, at = max(waiting)
            run = self._run(found, self._shapes[at])
            if run is None:
                return found
            waiting.remove((found, at))
            if (earlier := self._in[at].previous_local(run[0])) is not None:
                waiting.append((earlier, at))

    def _run(self, local: int, shape: Shape) -> tuple[int, int] | None:
        """First and last second of the excluded stretch around a candidate; None when it is not excluded."""
        day = local // civil.DAY_S
        if day in self.rules.exdays:
            return day * civil.DAY_S, (day + 1) * civil.DAY_S - 1
        if local in self.rules.exdates:
            return local, local
        for each in self._out:
            if each.covers(local):
                return each.run(local, shape)
        return None

    def never_reason(self) -> str | None:
        """Say why there is no member, when there is none."""
        if self.next_local(civil.MIN_LOCAL, inclusive=True) is not None:
            return None
        reasons = [rule.never_reason() for rule in self._in]
        if self.rules.rdates or None in reasons:
            return "its exceptions remove every slot"
        return "; ".join(dict.fromkeys(reason for reason in reasons if reason))

    def ends(self) -> bool:
        """Whether the members are finite."""
        return all(rule.ends() for rule in self._in)

    def default_dst(self) -> DstPolicy:
        """Follow the rule that repeats most often."""
        policies = [rule.default_dst() for rule in self._in]
        both = any(policy.fold is Fold.BOTH for policy in policies)
        return DstPolicy(Gap.SHIFT, Fold.BOTH if both else Fold.FIRST)

    def text(self) -> str:
        """One exact English sentence."""
        return set_text(self.rules)

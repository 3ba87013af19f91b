"""A recurrence set as one sequence: the union of its rules and dates, minus its exceptions."""

from bisect import bisect_left, bisect_right

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.rrule.parser import RuleSet
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.text import set_text
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap

#: Neighbouring candidates that exceptions may remove before a question is refused.
_SKIPS = 4000


class SetSequence:
    """LocalSequence of a :class:`RuleSet`."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        self._in = [RuleSequence(rule, rules.start, until) for rule, until in rules.rules]
        self._out = [RuleSequence(rule, rules.start, until) for rule, until in rules.exrules]
        self._dates = list(rules.rdates)
        self._sole = self._in[0] if len(self._in) == 1 and not (rules.rdates or self._excepts) else None

    @property
    def _excepts(self) -> bool:
        return bool(self._out or self.rules.exdates or self.rules.exdays)

    def next_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """First member after (or at) the local second."""
        if self._sole is not None:
            return self._sole.next_local(local, inclusive=inclusive)
        for _ in range(_SKIPS):
            found = self._next_in(local, inclusive)
            if found is None:
                return None
            past = self._excluded_to(found)
            if past is None:
                return found
            local, inclusive = past, False
        raise self._tangled()

    def previous_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """Last member before (or at) the local second."""
        if self._sole is not None:
            return self._sole.previous_local(local, inclusive=inclusive)
        for _ in range(_SKIPS):
            found = self._previous_in(local, inclusive)
            if found is None:
                return None
            past = self._excluded_from(found)
            if past is None:
                return found
            local, inclusive = past, False
        raise self._tangled()

    def _next_in(self, local: int, inclusive: bool) -> int | None:
        i = bisect_left(self._dates, local) if inclusive else bisect_right(self._dates, local)
        best = self._dates[i] if i < len(self._dates) else None
        for rule in self._in:
            found = rule.next_local(local, inclusive=inclusive)
            if found is not None and (best is None or found < best):
                best = found
        return best

    def _previous_in(self, local: int, inclusive: bool) -> int | None:
        i = bisect_right(self._dates, local) if inclusive else bisect_left(self._dates, local)
        best = self._dates[i - 1] if i else None
        for rule in self._in:
            found = rule.previous_local(local, inclusive=inclusive)
            if found is not None and (best is None or found > best):
                best = found
        return best

    def _excluded_to(self, local: int) -> int | None:
        """Last local second of the exception that covers this one; None when none does."""
        day = local // civil.DAY_S
        if day in self.rules.exdays:
            return (day + 1) * civil.DAY_S - 1
        if local in self.rules.exdates or any(rule.next_local(local, inclusive=True) == local for rule in self._out):
            return local
        return None

    def _excluded_from(self, local: int) -> int | None:
        day = local // civil.DAY_S
        if day in self.rules.exdays:
            return day * civil.DAY_S
        return self._excluded_to(local)

    def _tangled(self) -> RuleInvalid:
        return RuleInvalid(
            "exceptions_too_dense",
            f"EXRULE and EXDATE remove more than {_SKIPS} slots in a row",
            why="a question about a rule has bounded work",
            fix="say in the RRULE itself when it should fire",
        )

    def never_reason(self) -> str | None:
        """Say why there is no member, when there is none."""
        reasons = [rule.never_reason() for rule in self._in]
        if self._dates or any(reason is None for reason in reasons):
            return "its exceptions remove every slot" if self.next_local(civil.MIN_LOCAL) is None else None
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

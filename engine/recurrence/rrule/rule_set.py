"""A recurrence set as one sequence: the union of its rules and dates, minus its exceptions."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from lodger.engine.core.protocol import Protocol
from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.faults import fault
from lodger.engine.recurrence.rrule.parser import Entry, RuleSet
from lodger.engine.recurrence.rrule.parts import UNIT_S
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.text import set_text
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without importing typing
if TYPE_CHECKING:
    from lodger.engine.recurrence.rrule.relative import Taken
    from lodger.engine.recurrence.rrule.remainder import Remainder


class _Source(Protocol):
    def next_local(self, local: int, *, inclusive: bool = False) -> int | None: ...

    def previous_local(self, local: int, *, inclusive: bool = False) -> int | None: ...


class SetSequence:
    """LocalSequence of a :class:`RuleSet`, or of some of its rules.

    Raises:
        RuleInvalid: ``exceptions_too_dense``.
    """

    def __init__(self, rules: RuleSet, entries: Sequence[Entry] | None = None, taken: "Sequence[Taken]" = ()) -> None:
        """Read a set; ``taken`` is what its rules lack besides."""
        self.rules = rules
        self._entries, self._taken = entries, tuple(taken)
        self.included = tuple(_sequence(entry) for entry in (rules.rules if entries is None else entries))
        excepted = [_sequence(entry) for entry in rules.exrules]
        #: All of its EXRULEs.
        self.exceptions = tuple(excepted)
        few = [each for each in excepted if _is_few(each)]
        #: EXRULEs with more than a few members.
        self.excepted = tuple(each for each in excepted if each not in few)
        dates = set(rules.rdates)
        self._sources: list[_Source] = list(self.included)
        #: Its rules after EXRULEs are taken away; nothing when there are none.
        self.remainders: tuple[Remainder, ...] = ()
        if self.excepted or taken:
            dates |= {local for rule in self.included for local in rule.head}
            dates = {local for local in dates if not self._excepted(local)}
            self.remainders = self._left()
            self._sources = list(self.remainders)
        without = {(day * civil.DAY_S, day * civil.DAY_S + civil.DAY_S - 1) for day in rules.exdays}
        without |= {(local, local) for local in rules.exdates}
        without |= {(local, local) for rule in self.excepted for local in rule.head}
        without |= {(local, local) for rule in few for local in _members(rule)}
        #: Ranges of seconds without members, ascending, and for each the member before and after its row.
        self._firsts, self._lasts = _joined(without)
        #: RDATEs, and members of first weeks, that no exception removes.
        self.dates = tuple(sorted(local for local in dates if self._range(local) < 0))
        self._after: list[int | None] = [None] * len(self._firsts)
        self._before: list[int | None] = [None] * len(self._firsts)
        for i in range(len(self._firsts) - 1, -1, -1):
            found = self._first(self._lasts[i] + 1)
            j = -1 if found is None else self._range(found)
            self._after[i] = found if j < 0 else self._after[j]
        for i in range(len(self._firsts)):
            found = self._last(self._firsts[i] - 1)
            j = -1 if found is None else self._range(found)
            self._before[i] = found if j < 0 else self._before[j]
        bare = not (self.dates or self._firsts)
        self._sole = self._sources[0] if len(self._sources) == 1 and bare else None

    def _left(self) -> "tuple[Remainder, ...]":
        # Few rules have exceptions: the others read nothing of how they are taken away.
        from lodger.engine.recurrence.rrule.blocks import blocks_of
        from lodger.engine.recurrence.rrule.leftover import TooMany
        from lodger.engine.recurrence.rrule.relative import taken_by
        from lodger.engine.recurrence.rrule.remainder import Remainder

        try:
            shut = [*self._taken, *(each for rule in self.excepted for each in taken_by(rule))]
            return tuple(
                Remainder(blocks_of(rule), rule.base, rule.start, rule.until, shut)
                for rule in self.included
                if rule.base is not None
            )
        except TooMany:
            raise fault(
                "exceptions_too_dense",
                "what the EXRULEs leave of the rules cannot be said in few enough parts",
                0,
                fix="use fewer or simpler EXRULEs, or make them exclusions of the schedule",
            ) from None

    @property
    def has_exceptions(self) -> bool:
        """Whether it lacks members of its rules."""
        return bool(self.excepted or self._taken or self._firsts)

    @property
    def removed(self) -> tuple[list[int], list[int]]:
        """First and last seconds of the ranges without members."""
        return self._firsts, self._lasts

    def _excepted(self, local: int) -> bool:
        return any(rule.next_local(local, inclusive=True) == local for rule in self.excepted)

    def _range(self, local: int) -> int:
        """Index of the range without members that holds a second; -1 when none does."""
        i = bisect_right(self._firsts, local) - 1
        return i if i >= 0 and local <= self._lasts[i] else -1

    def next_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """First member after (or at) the local second."""
        if self._sole is not None:
            return self._sole.next_local(local, inclusive=inclusive)
        found = self._first(local if inclusive else local + 1)
        if found is None or not self._firsts:
            return found
        i = self._range(found)
        return found if i < 0 else self._after[i]

    def _first(self, local: int) -> int | None:
        i = bisect_left(self.dates, local)
        best = self.dates[i] if i < len(self.dates) else None
        for source in self._sources:
            found = source.next_local(local, inclusive=True)
            if found is not None and (best is None or found < best):
                best = found
        return best

    def previous_local(self, local: int, *, inclusive: bool = False) -> int | None:
        """Last member before (or at) the local second."""
        if self._sole is not None:
            return self._sole.previous_local(local, inclusive=inclusive)
        found = self._last(local if inclusive else local - 1)
        if found is None or not self._firsts:
            return found
        i = self._range(found)
        return found if i < 0 else self._before[i]

    def _last(self, local: int) -> int | None:
        i = bisect_right(self.dates, local)
        best = self.dates[i - 1] if i else None
        for source in self._sources:
            found = source.previous_local(local, inclusive=True)
            if found is not None and (best is None or found > best):
                best = found
        return best

    def without(self, taken: "Sequence[Taken]") -> "SetSequence":
        """The same set, its single dates aside, without some times of some days.

        Raises:
            RuleInvalid: ``exceptions_too_dense``, when that cannot be said in few parts.
        """
        return SetSequence(self.rules, self._entries, (*self._taken, *taken))

    def never_reason(self) -> str | None:
        """Say why there is no member, when there is none."""
        if self.next_local(civil.MIN_LOCAL, inclusive=True) is not None:
            return None
        reasons = [rule.never_reason() for rule in self.included]
        if self.rules.rdates or None in reasons:
            return "its exceptions remove every slot"
        return "; ".join(dict.fromkeys(reason for reason in reasons if reason))

    def ends(self) -> bool:
        """Whether the members are finite."""
        return all(rule.ends() for rule in self.included)

    def default_dst(self) -> DstPolicy:
        """Follow the rule that repeats most often."""
        policies = [rule.default_dst() for rule in self.included]
        both = any(policy.fold is Fold.BOTH for policy in policies)
        return DstPolicy(Gap.SHIFT, Fold.BOTH if both else Fold.FIRST)

    def text(self) -> str:
        """One exact English sentence."""
        return set_text(self.rules)


def _sequence(entry: Entry) -> RuleSequence:
    return RuleSequence(entry.rule, entry.start, entry.until)


#: An EXRULE with so few members in all is a list of dates.
_FEW, _FEW_STEPS = 32, 400


def _is_few(rule: RuleSequence) -> bool:
    unit_s = UNIT_S.get(rule.rule.freq, 7 * civil.DAY_S)
    steps = (rule.until - rule.start) // (rule.rule.interval * unit_s)
    most = _FEW_STEPS if steps <= _FEW_STEPS else _FEW if rule.ends() else 0
    return len(list(islice(_members(rule), most + 1))) <= most


def _members(rule: RuleSequence) -> Iterator[int]:
    local = rule.next_local(civil.MIN_LOCAL, inclusive=True)
    while local is not None:
        yield local
        local = rule.next_local(local)


def _joined(ranges: set[tuple[int, int]]) -> tuple[list[int], list[int]]:
    firsts: list[int] = []
    lasts: list[int] = []
    for first, last in sorted(ranges):
        if lasts and first <= lasts[-1] + 1:
            lasts[-1] = max(lasts[-1], last)
        else:
            firsts.append(first)
            lasts.append(last)
    return firsts, lasts

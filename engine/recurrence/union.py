"""A whole schedule as one Recurrence: the union of its rules, minus its exclusions, inside [start, end)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.rule import Density, Recurrence
from lodger.engine.recurrence.window import Windows

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)

#: Windows that may follow one another without a free slot between them before a question is refused.
_WINDOWS_IN_A_ROW = 2000
#: Schedules that end within so many slots are measured slot by slot.
_WALKED = 400


class ExclusionsTooDense(RuleInvalid):
    """Exclusions cover so many slots one after another that the next free one is not looked for."""


class Union:
    """Slots of several rules; two rules that name one instant make one slot."""

    def __init__(
        self,
        rules: Sequence[Recurrence],
        exclusions: Sequence[Windows] = (),
        *,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        self.rules = tuple(rules)
        self.exclusions = tuple(exclusions)
        self.start = start
        self.end = end

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """First slot after the instant (or at it, when inclusive)."""
        if self.start is not None and instant < self.start:
            instant, inclusive = self.start, True
        for _ in range(_WINDOWS_IN_A_ROW):
            found = None
            for rule in self.rules:
                slot = rule.next_after(instant, inclusive=inclusive)
                if slot is not None and (found is None or slot < found):
                    found = slot
            if found is None or (self.end is not None and found >= self.end):
                return None
            closed = None
            for exclusion in self.exclusions:
                window = exclusion.covering(found)
                if window is not None and (closed is None or window[1] > closed):
                    closed = window[1]
            if closed is None:
                return found
            instant, inclusive = closed, closed > found
        raise self._too_dense()

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Last slot before the instant (or at it, when inclusive)."""
        if self.end is not None and instant >= self.end:
            instant, inclusive = self.end, False
        for _ in range(_WINDOWS_IN_A_ROW):
            found = None
            for rule in self.rules:
                slot = rule.previous_before(instant, inclusive=inclusive)
                if slot is not None and (found is None or slot > found):
                    found = slot
            if found is None or (self.start is not None and found < self.start):
                return None
            opened = None
            for exclusion in self.exclusions:
                window = exclusion.covering(found)
                if window is not None and (opened is None or window[0] < opened):
                    opened = window[0]
            if opened is None:
                return found
            instant, inclusive = opened, False
        raise self._too_dense()

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Slots in [start, end), ascending, lazily."""
        slot = self.next_after(start, inclusive=True)
        while slot is not None and slot < end:
            yield slot
            slot = self.next_after(slot)

    def text(self) -> str:
        """One exact English sentence."""
        first, *others = (rule.text() for rule in self.rules)
        words = first
        for other in others:
            words += f"; and {other[0].lower()}{other[1:]}"
        for exclusion in self.exclusions:
            closed = exclusion.text()
            words += f"; but not {closed[0].lower()}{closed[1:]}"
        if self.start is not None:
            words += f"; from {_instant(self.start)}"
        if self.end is not None:
            words += f"; before {_instant(self.end)}"
        return words

    def proves_never(self) -> str | None:
        """Give the reason why no slot exists before year 10000, or None when one exists.

        Exclusions that cover :data:`_WINDOWS_IN_A_ROW` slots in a row from the beginning count as covering all.
        """
        try:
            if self.next_after(FIRST, inclusive=True) is not None:
                return None
        except ExclusionsTooDense as error:
            return error.what
        reasons = [rule.proves_never() for rule in self.rules]
        if not reasons:
            return "the schedule has no rule"
        if all(reasons):
            return "; ".join(dict.fromkeys(reason for reason in reasons if reason))
        if Union(self.rules, (), start=self.start, end=self.end).next_after(FIRST, inclusive=True) is None:
            return "no slot of its rules lies between its start and its end"
        return "its exclusions cover every slot"

    def ends(self) -> bool:
        """Whether the slots are finite."""
        return self.end is not None or all(rule.ends() for rule in self.rules)

    def shifted(self, slot: datetime) -> bool:
        """Whether DST moved this slot away from the local time that some rule wrote."""
        naming = [rule for rule in self.rules if rule.next_after(slot, inclusive=True) == slot]
        return bool(naming) and all(rule.shifted(slot) for rule in naming)

    def density(self) -> Density:
        """How often it fires at most: no two slots from 1970 on are closer, and no UTC day has more.

        A schedule with few slots is measured; any other is bounded by :mod:`lodger.engine.recurrence.density`.
        """
        from lodger.engine.recurrence.density import Load

        walked, slot = [], self.next_after(FIRST, inclusive=True)
        while slot is not None and len(walked) < _WALKED:
            walked.append(slot)
            slot = self.next_after(slot)
        if slot is None:
            per_day = Counter(each.date() for each in walked)
            gaps = [(b - a).total_seconds() for a, b in pairwise(walked)]
            return Density(min(gaps, default=None), max(per_day.values(), default=0))
        load = Load()
        load.add(self)
        return load.density(self)

    def _too_dense(self) -> ExclusionsTooDense:
        return ExclusionsTooDense(
            "exclusions_too_dense",
            f"its exclusions cover {_WINDOWS_IN_A_ROW} slots in a row and leave none between them",
            why="a question about a schedule has bounded work",
            fix="write the blackout as windows (DTSTART with DURATION, or whole days) instead of single instants",
        )


def _instant(instant: datetime) -> str:
    utc, _ = civil.utc_floor(instant)
    return civil.instant_of(utc).strftime("%Y-%m-%dT%H:%M:%SZ")

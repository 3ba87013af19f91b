"""A whole schedule as one Recurrence: the union of its rules, minus its exclusions, inside [start, end)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Protocol

from lodger.engine.recurrence.instant import format_instant
from lodger.engine.recurrence.meter import MOST, US, Metered, TooLong, spend
from lodger.engine.recurrence.rule import Density, Recurrence
from lodger.engine.recurrence.window import Windows

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)

#: Schedules that end within so many slots are measured slot by slot.
_WALKED = 400
#: Slots among which those are looked for that reach a bound.
_WITNESSES = 3000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Asked(Protocol):
    """What a union asks of its rules."""

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """First slot after the instant (or at it, when inclusive)."""
        ...

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Last slot before the instant (or at it, when inclusive)."""
        ...

    def ends(self) -> bool:
        """Whether the slots are finite."""
        ...


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
        #: Nothing is known of what is closed later.
        self.last = min((each.last for each in self.exclusions), default=LAST)
        #: What is asked for slots: the rules, or what exclusions leave of them once that is known.
        self.asked: tuple[Asked, ...] = self.rules

    def closed_until(self, slot: datetime) -> datetime | None:
        """Latest end of the exclusions over a slot, which is itself when only instants are; None when it is free."""
        closed = None
        for exclusion in self.exclusions:
            window = exclusion.covering(slot)
            if window is not None and (closed is None or window[1] > closed):
                closed = window[1]
        return closed

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """First slot after the instant (or at it, when inclusive)."""
        if self.start is not None and instant < self.start:
            instant, inclusive = self.start, True
        found = None
        for rule in self.asked:
            slot = rule.next_after(instant, inclusive=inclusive)
            if slot is not None and (found is None or slot < found):
                found = slot
        return None if found is None or found > self.last or (self.end is not None and found >= self.end) else found

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Last slot before the instant (or at it, when inclusive)."""
        if self.end is not None and instant >= self.end:
            instant, inclusive = self.end, False
        if instant > self.last:
            instant, inclusive = self.last, True
        found = None
        for rule in self.asked:
            slot = rule.previous_before(instant, inclusive=inclusive)
            if slot is not None and (found is None or slot > found):
                found = slot
        return None if found is None or (self.start is not None and found < self.start) else found

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Slots in [start, end), ascending, lazily."""
        slot = self.next_after(start, inclusive=True)
        while slot is not None and slot < end:
            yield slot
            slot = self.next_after(slot)

    def text(self) -> str:
        """One exact English sentence.

        A rule that is a set of its own joins its parts by "and" and "but not", so the words between rules are others.
        """
        first, *others = (rule.text() for rule in self.rules)
        words = first
        for other in others:
            words += f"; and also {other[0].lower()}{other[1:]}"
        for exclusion in self.exclusions:
            closed = exclusion.text()
            words += f"; but never {closed[0].lower()}{closed[1:]}"
        if self.start is not None:
            words += f"; from {format_instant(self.start)}"
        if self.end is not None:
            words += f"; before {format_instant(self.end)}"
        return words

    def proves_never(self) -> str | None:
        """Give the reason why no slot exists before year 10000, or None when one exists."""
        if self.next_after(FIRST, inclusive=True) is not None:
            return None
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
        return self.end is not None or all(rule.ends() for rule in self.asked)

    def shifted(self, slot: datetime) -> bool:
        """Whether DST moved this slot away from the local time that some rule wrote."""
        naming = [rule for rule in self.rules if rule.next_after(slot, inclusive=True) == slot]
        return bool(naming) and all(rule.shifted(slot) for rule in naming)

    def density(self, since: datetime | None = None, *, gap_only: bool = False) -> Density:
        """How often it fires at most from an instant on (None: 1970): no two slots are closer, and no UTC day has more.

        A schedule with few slots is measured. Any other is bounded by :mod:`lodger.engine.recurrence.density`, and where no
        slots are found that reach the bound it is counted (:mod:`lodger.engine.recurrence.census`), if that is bounded work.
        With ``gap_only`` the fullest day stays a bound where counting it would be the only work.
        """
        from lodger.engine.recurrence.density import Load

        since = _EPOCH if since is None else max(since, _EPOCH)
        walked: list[datetime] = []
        slot = self.next_after(since, inclusive=True)
        while slot is not None and len(walked) < _WALKED:
            walked.append(slot)
            slot = self.next_after(slot)
        if slot is None:
            per_day = Counter(each.date() for each in walked)
            gaps = [(b - a).total_seconds() for a, b in pairwise(walked)]
            return Density(min(gaps, default=None), max(per_day.values(), default=0), exact=True)
        from lodger.engine.recurrence.census import counted, reached

        load = Load()
        load.add(self)
        bound = load.density(self)
        try:
            with Metered(2 * MOST):
                if bound.most_per_day > _WITNESSES and reached(self, bound, since):
                    return replace(bound, exact=True)
                close, full = self._reaches(bound, since, gap_only=gap_only)
                if close and (full or gap_only):
                    return replace(bound, exact=full)
                return counted(self, since) or bound
        except TooLong:
            return bound

    def _reaches(self, bound: Density, since: datetime, *, gap_only: bool) -> tuple[bool, bool]:
        """Whether slots from an instant on are as close, and whether a day of them is as full, as a bound says."""
        from lodger.engine.recurrence.effort import slot_us

        close = full = False
        cost = US * slot_us(self)
        per_day = Counter[date]()
        before, slot = None, self.next_after(since, inclusive=True)
        for _ in range(_WITNESSES):
            if slot is None or (close and (full or gap_only)):
                break
            spend(cost)
            per_day[slot.date()] += 1
            close = close or (before is not None and (slot - before).total_seconds() == bound.smallest_gap_s)
            full = full or per_day[slot.date()] == bound.most_per_day
            before, slot = slot, self.next_after(slot)
        return close, full

"""The slots of one rule at which no exclusion is closed."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lodger.engine.recurrence.civil import DAY_S, MAX_LOCAL, MIN_LOCAL, instant_of, utc_floor
from lodger.engine.recurrence.dial import highest, lowest
from lodger.engine.recurrence.effort import first_us
from lodger.engine.recurrence.meter import US, spend
from lodger.engine.recurrence.rule import Recurrence
from lodger.engine.recurrence.spread import Spread
from lodger.engine.recurrence.union import FIRST
from lodger.engine.recurrence.window import Windows

#: Slots that are found closed one after another before the stretch that follows is looked at as a whole.
PATIENCE = 2
#: That stretch: whatever time it begins at, the whole of the next local day lies in it.
LEAP_S = 2 * DAY_S + 7200
_FAR = datetime(9000, 1, 1, tzinfo=FIRST.tzinfo)


class Stretches:
    """Closed stretches that are listed, each from one instant up to another: the last one inside when it is single."""

    def __init__(self, windows: Sequence[tuple[datetime, datetime]]) -> None:
        self.begins: list[datetime] = []
        self.ends: list[datetime] = []
        for begin, end in sorted(windows):
            if self.ends and begin < self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], end)
            elif not self.begins or begin > self.begins[-1]:
                self.begins.append(begin)
                self.ends.append(end)

    def at(self, instant: datetime) -> int:
        """Index of the stretch that closes an instant; -1 when none does."""
        i = bisect_right(self.begins, instant) - 1
        return i if i >= 0 and (instant < self.ends[i] or instant == self.begins[i]) else -1


@dataclass(frozen=True, slots=True)
class Most:
    """What a question costs at most, as it was proved.

    Attributes:
        asked: so often the source is asked for a slot.
        leaps: so often a stretch is looked at as a whole.
        us: that in microseconds.
    """

    asked: int
    leaps: int
    us: int


class Freed:
    """A rule without what its exclusions close.

    Args:
        rule: as it is without exclusions.
        source: the same with what is surely closed left out.
        asked: exclusions that may close more.
        listed: closed stretches that are known one by one.
        spread: what is left of the source by the second, for rows of closed slots; None when they are walked through.
        most: what a question costs at most.
    """

    def __init__(
        self,
        rule: Recurrence,
        source: Recurrence,
        asked: Sequence[Windows],
        listed: Stretches,
        spread: Spread | None,
        most: Most,
    ) -> None:
        self.rule, self.source, self.asked, self.spread = rule, source, tuple(asked), spread
        self.most = most
        self._listed = listed
        count = len(listed.begins)
        #: For each listed stretch the free slot before and after it.
        self._before: list[datetime | None] = [None] * count
        self._after: list[datetime | None] = [None] * count
        spend(2 * US * count * (first_us(source) + sum(first_us(each.opens) for each in asked)))
        for i in range(count - 1, -1, -1):
            single = listed.ends[i] == listed.begins[i]
            self._after[i] = self._free_from(source.next_after(listed.ends[i], inclusive=not single))
        for i in range(count):
            self._before[i] = self._free_to(source.previous_before(listed.begins[i]))

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """First slot after the instant (or at it, when inclusive)."""
        return self._free_from(self.source.next_after(instant, inclusive=inclusive))

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Last slot before the instant (or at it, when inclusive)."""
        return self._free_to(self.source.previous_before(instant, inclusive=inclusive))

    def ends(self) -> bool:
        """Whether its slots are finite: by the rule, or because from some day on everything is closed."""
        return self.rule.ends() or self.next_after(_FAR) is None

    def _free_from(self, slot: datetime | None) -> datetime | None:
        """The slot of the source, or the first free one after it."""
        row = 0
        while slot is not None:
            if (at := self._listed.at(slot)) >= 0:
                return self._after[at]
            closed = [end for each in self.asked if (end := each.closed_until(slot)) is not None]
            if not closed:
                return slot
            row += 1
            if row > PATIENCE and self.spread is not None:
                first, _ = utc_floor(slot)
                if free := self.spread.free(first, LEAP_S):
                    slot = instant_of(first + lowest(free))
                    return slot if (at := self._listed.at(slot)) < 0 else self._after[at]
                slot = self.source.next_after(instant_of(min(first + LEAP_S - 1, MAX_LOCAL)))
            else:
                latest = max(closed)
                slot = self.source.next_after(latest, inclusive=latest > slot)
        return None

    def _free_to(self, slot: datetime | None) -> datetime | None:
        """The slot of the source, or the last free one before it."""
        row = 0
        while slot is not None:
            if (at := self._listed.at(slot)) >= 0:
                return self._before[at]
            closed = [begin for each in self.asked if (begin := each.closed_from(slot)) is not None]
            if not closed:
                return slot
            row += 1
            if row > PATIENCE and self.spread is not None:
                last, _ = utc_floor(slot)
                first = max(last - LEAP_S + 1, MIN_LOCAL)
                if free := self.spread.free(first, last + 1 - first):
                    slot = instant_of(first + highest(free))
                    return slot if (at := self._listed.at(slot)) < 0 else self._before[at]
                slot = self.source.previous_before(instant_of(first))
            else:
                slot = self.source.previous_before(min(closed))
        return None

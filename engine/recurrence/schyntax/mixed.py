"""A Schyntax schedule under a zone, each group with the DST default of its own granularity.

``{h(9)} {m(*%5)}`` has a group that fires once a day at a fixed hour and one that runs by the clock: in the
repeated hour the second goes on and the first does not, so they are two wall-clock rules and one sentence.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from lodger.engine.recurrence.rule import DstPolicy, Recurrence
from lodger.engine.recurrence.schyntax.rule import SchyntaxRule
from lodger.engine.recurrence.zoned import Zoned
from lodger.engine.recurrence.zones import Zone


@dataclass(frozen=True, slots=True)
class Mixed:
    """Recurrence of a schedule whose groups differ in granularity.

    Attributes:
        whole: all groups; says the sentence.
        parts: the groups by granularity; name the slots.
    """

    whole: Zoned
    parts: tuple[Zoned, ...]

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """First slot after the instant (or at it, when inclusive)."""
        found = (part.next_after(instant, inclusive=inclusive) for part in self.parts)
        return min((slot for slot in found if slot is not None), default=None)

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Last slot before the instant (or at it, when inclusive)."""
        found = (part.previous_before(instant, inclusive=inclusive) for part in self.parts)
        return max((slot for slot in found if slot is not None), default=None)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Slots in [start, end), ascending, lazily."""
        slot = self.next_after(start, inclusive=True)
        while slot is not None and slot < end:
            yield slot
            slot = self.next_after(slot)

    def text(self) -> str:
        """One exact English sentence with the zone."""
        return self.whole.text()

    def proves_never(self) -> str | None:
        """Give the reason why no slot exists before year 10000, or None when one exists."""
        reasons = [part.proves_never() for part in self.parts]
        return "; ".join(filter(None, reasons)) if all(reasons) else None

    def ends(self) -> bool:
        """Whether the slots are finite."""
        return all(part.ends() for part in self.parts)

    def shifted(self, slot: datetime) -> bool:
        """Whether DST moved this slot away from its written local time, in every group that names it."""
        named = [part for part in self.parts if part.next_after(slot, inclusive=True) == slot]
        return bool(named) and all(part.shifted(slot) for part in named)


def zoned(rule: SchyntaxRule, zone: Zone, dst: DstPolicy) -> Recurrence:
    """Put a schedule under its zone; a policy that leaves nothing open makes the split pointless."""
    parts = rule.by_granularity()
    if len(parts) < 2 or (dst.gap is not None and dst.fold is not None):
        return Zoned(rule, zone, dst)
    return Mixed(Zoned(rule, zone, dst), tuple(Zoned(part, zone, dst) for part in parts))

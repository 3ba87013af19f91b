"""A Schyntax schedule under a zone, each group with the DST default of its own granularity.

``{h(9)} {m(*%5)}`` has a group that fires once a day at a fixed hour and one that runs by the clock: in the
repeated hour the second goes on and the first does not, so they are two wall-clock rules and one sentence.
"""

from lodger.engine.recurrence.rule import DstPolicy
from lodger.engine.recurrence.schyntax.rule import SchyntaxRule
from lodger.engine.recurrence.union import Union
from lodger.engine.recurrence.zoned import Zoned
from lodger.engine.recurrence.zones import Zone


class Mixed(Union):
    """Union of the groups by granularity that says the sentence of the whole."""

    def __init__(self, whole: Zoned, parts: tuple[Zoned, ...]) -> None:
        super().__init__(parts)
        self.whole = whole

    def text(self) -> str:
        """One exact English sentence with the zone."""
        return self.whole.text()


def zoned(rule: SchyntaxRule, zone: Zone, dst: DstPolicy) -> Zoned | Mixed:
    """Put a schedule under its zone; a policy that leaves nothing open makes the split pointless."""
    parts = rule.by_granularity()
    if len(parts) < 2 or (dst.gap is not None and dst.fold is not None):
        return Zoned(rule, zone, dst)
    return Mixed(Zoned(rule, zone, dst), tuple(Zoned(part, zone, dst) for part in parts))

"""How much a node dares to hold that hardly keeps its lease: runs of its own may be what starves it of its processor.

As a sender does on a network that drops what it sends: half as much after each trouble, twice as much again after each
renewal in time. A node that nothing is wrong with never notices.
"""

from dataclasses import dataclass

#: A renewal that begins later than this part of the time that a lease is kept for was late.
LATE = 0.5


@dataclass(frozen=True, slots=True)
class Restraint:
    """By how much a node holds itself back: ``halvings`` of its slots."""

    halvings: int = 0

    def of(self, slots: int) -> int:
        """Give how many of so many slots it uses, at least one."""
        return max(1, slots >> self.halvings)

    def troubled(self, slots: int) -> "Restraint":
        """Give the restraint after a renewal that came late, or after a lost lease."""
        return Restraint(min(self.halvings + 1, max(0, slots.bit_length() - 1)))

    def renewed(self, after_s: float, kept_s: float, slots: int) -> "Restraint":
        """Give the restraint after a renewal.

        Args:
            after_s: since the one before.
            kept_s: how long after a renewal the node would have given up.
        """
        return self.troubled(slots) if after_s > kept_s * LATE else Restraint(max(0, self.halvings - 1))

"""What of a node a run takes: a slot, memory reserved for it, and for a long run one of the slots that long runs may have."""

from dataclasses import dataclass, replace

from lodger.sandbox.limits import Limits

#: A run that may take longer is a long one.
LONG_MS = 10_000
MEMORY = "node_memory"
LONG = "node_long"


def long_slots(slots: int) -> int:
    """How many of a node's slots long runs may hold at once: half of them, at least one."""
    return max(1, slots // 2)


@dataclass(frozen=True, slots=True)
class Room:
    """What is free on a node.

    Attributes:
        long: slots that long runs may still take.
        memory_bytes: not reserved yet.
    """

    slots: int
    long: int
    memory_bytes: int

    def refuses(self, limits: Limits) -> str | None:
        """Why a run with these limits cannot start here now, or None."""
        if limits.wall_ms > LONG_MS and self.long <= 0:
            return LONG
        return MEMORY if limits.memory_bytes > self.memory_bytes else None

    def takes(self, number: int, limits: Limits) -> bool:
        """Whether so many runs with these limits fit all at once."""
        return limits.memory_bytes * number <= self.memory_bytes and (limits.wall_ms <= LONG_MS or number <= self.long)

    def without(self, number: int, limits: Limits) -> "Room":
        """Give what is left when so many runs with these limits have started."""
        return replace(
            self,
            slots=self.slots - number,
            long=self.long - (number if limits.wall_ms > LONG_MS else 0),
            memory_bytes=self.memory_bytes - number * limits.memory_bytes,
        )


def unbounded(slots: int) -> Room:
    """Give the room of a node whose memory nobody counts."""
    return Room(slots, slots, 1 << 62)

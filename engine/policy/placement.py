"""Room of a node for runs (slots, reserved memory, slots for long runs), and how many slots a node in trouble uses.

A node that hardly keeps its lease uses half as many slots after each late renewal or lost lease, and twice as many again after each
renewal in time: its own runs may be what takes its CPU time.
"""

from dataclasses import dataclass

from lodger.sandbox.limits import Limits

#: A run that may take longer is a long one.
LONG_MS = 35_000
MEMORY = "node_memory"
LONG = "node_long"


def long_slots(slots: int) -> int:
    """How many of a node's slots long runs may hold at once: half of them, at least one."""
    return max(1, slots // 2)


@dataclass(frozen=True, slots=True)
class Room:
    """Free room of a node.

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
        """Return the room that is left when so many runs with these limits have started."""
        long = self.long - (number if limits.wall_ms > LONG_MS else 0)
        return Room(self.slots - number, long, self.memory_bytes - number * limits.memory_bytes)


def unbounded(slots: int) -> Room:
    """Return the room of a node with so many slots and unlimited memory."""
    return Room(slots, slots, 1 << 62)


#: A renewal that begins later than this part of the time that a lease is kept for was late.
LATE = 0.5


@dataclass(frozen=True, slots=True)
class SlotReduction:
    """How often a node has halved the number of slots that it uses."""

    halvings: int = 0

    def of(self, slots: int) -> int:
        """Return how many of its slots a node uses with this reduction, at least one."""
        return max(1, slots >> self.halvings)

    def troubled(self, slots: int) -> "SlotReduction":
        """Return the reduction after a renewal that came late, or after a lost lease."""
        return SlotReduction(min(self.halvings + 1, max(0, slots.bit_length() - 1)))

    def renewed(self, after_s: float, kept_s: float, slots: int) -> "SlotReduction":
        """Return the reduction after a renewal.

        Args:
            after_s: seconds since the renewal before.
            kept_s: seconds after a renewal at which the node would have given up.
        """
        return self.troubled(slots) if after_s > kept_s * LATE else SlotReduction(max(0, self.halvings - 1))


#: A node whose event loop runs later than so many seconds is short of CPU time, whatever slots it has left.
MAX_LAG_S = 0.25
#: A node is saturated when it is full or short of CPU time in at least this part of the last minute.
SATURATED = 0.5


def is_overloaded(*, full: bool, lag_s: float) -> bool:
    """Whether a node has no slot or no CPU time left at a moment."""
    return full or lag_s > MAX_LAG_S

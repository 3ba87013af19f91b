"""How much later than its slot an action is due: the same for every run of one schedule, different between schedules."""

from datetime import datetime, timedelta
from hashlib import blake2b

_PARTS = 1 << 32


def share(seed: str) -> int:
    """Give the seed's place in [0, 2**32): the same on every machine and in every release of Python."""
    return int.from_bytes(blake2b(seed.encode(), digest_size=4).digest(), "big")


def delay(seed: str, most: timedelta, slot: datetime, following: datetime | None) -> timedelta:
    """Give how long after its slot an action is due, always before the following slot.

    Regular slots stay regular, because the share depends on the schedule alone; order is kept, because no delay reaches
    the following slot.

    Args:
        seed: the schedule's id.
        most: the schedule's jitter.
        following: the slot after this one; None when this is the last.
    """
    room = most if following is None else min(most, following - slot)
    return timedelta(microseconds=share(seed) * (room // timedelta(microseconds=1)) // _PARTS)

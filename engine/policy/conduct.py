"""Conduct of a schedule's actions: when they are due, how long they may wait, their order, and their end."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from lodger.engine.core.access.labels import parse_labels
from lodger.engine.core.errors import InputError
from lodger.engine.policy.defaults import BY_NAME, number, whole, word

_PARTS = 1 << 32


def hash_fraction(seed: str) -> int:
    """Hash a seed to a number in [0, 2**32) that is the same on every machine and in every release of Python."""
    return int.from_bytes(blake2b(seed.encode(), digest_size=4).digest(), "big")


def delay(seed: str, jitter: timedelta, slot: datetime, following: datetime | None) -> timedelta:
    """Return how long after its slot an action is due; that is always before the following slot.

    Regular slots stay regular, because the delay depends on the schedule alone; order is kept, because no delay reaches
    the following slot.

    Args:
        seed: the schedule's id.
        jitter: the longest delay.
        following: the slot after this one; None when this is the last.
    """
    room = jitter if following is None else min(jitter, following - slot)
    return timedelta(microseconds=hash_fraction(seed) * (room // timedelta(microseconds=1)) // _PARTS)


class Priority(IntEnum):
    """Order of a tenant's waiting actions. It means nothing between tenants, which take turns."""

    HIGH = -1
    NORMAL = 0
    LOW = 1


class Placement(StrEnum):
    """Where a slot's action runs."""

    ANY = "any"
    EVERY_NODE = "every_node"


def parse_placement(text: str) -> Placement:
    """Read ``any`` or ``every_node``.

    Raises:
        InputError: placement_invalid.
    """
    try:
        return Placement(str(text).strip().lower())
    except ValueError:
        raise InputError("placement_invalid", text=text, placements=Placement) from None


def parse_priority(text: str) -> Priority:
    """Read ``high``, ``normal`` or ``low``.

    Raises:
        InputError: priority_invalid.
    """
    try:
        return _priority(str(text))
    except KeyError:
        raise InputError("priority_invalid", text=text) from None


@lru_cache(maxsize=64)
def _priority(text: str) -> Priority:
    """Return the priority that a text names."""
    return Priority[text.strip().upper()]


@dataclass(frozen=True, slots=True)
class Conduct:
    """The policies of one schedule beside missed, overlap and retry; every field has its default in the policy table.

    Attributes:
        jitter_s: actions are due up to so much after their slot, see :func:`delay`.
        expires_s: an action that has not started so long after it was due is ``expired``; 0 means never.
        priority: high, normal or low.
        pause_after: the schedule is paused after so many failed actions in a row; 0 means never.
        labels: that a node must carry to run it; see :mod:`lodger.engine.core.access.labels`.
        placement: ``any`` node, or once on ``every_node`` that carries the labels.
    """

    jitter_s: float = number("jitter_s")
    expires_s: float = number("expires_s")
    priority: str = word("priority")
    pause_after: int = whole("pause_after")
    labels: tuple[str, ...] = ()
    placement: Placement = Placement.ANY

    def __post_init__(self) -> None:
        for name in ("jitter_s", "expires_s", "pause_after"):
            BY_NAME[name].require("policy_invalid", getattr(self, name))
        parse_priority(self.priority)
        object.__setattr__(self, "labels", parse_labels(self.labels))
        object.__setattr__(self, "placement", parse_placement(self.placement))

    @property
    def jitter(self) -> timedelta:
        """The longest delay of an action after its slot, as a duration."""
        return timedelta(seconds=self.jitter_s)

    @property
    def expiry_us(self) -> int | None:
        """Microseconds from due to expired; None when actions do not expire."""
        return round(self.expires_s * 1_000_000) or None

    @property
    def rank(self) -> int:
        """The priority as the number that actions are ordered by, ascending."""
        return int(parse_priority(self.priority))

    def as_dict(self) -> dict[str, Any]:
        """Return the policies as a JSON object."""
        return asdict(self) | {"labels": list(self.labels), "placement": self.placement.value}

    def stops(self, failures: int) -> bool:
        """Whether a schedule with so many failed actions in a row is paused."""
        return bool(self.pause_after) and failures >= self.pause_after


def parse_conduct(wish: "Conduct | Mapping[str, Any] | None") -> Conduct:
    """Read an object with some of the fields.

    Raises:
        InputError: policy_unknown, policy_invalid, priority_invalid.
    """
    if isinstance(wish, Conduct):
        return wish
    wish = wish or {}
    names = [field.name for field in fields(Conduct)]
    unknown = sorted(set(wish) - set(names))
    if unknown:
        raise InputError("policy_unknown", names=names, name=unknown[0])
    return Conduct(**wish)

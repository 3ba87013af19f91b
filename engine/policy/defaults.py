"""Table of the policies' defaults; documentation and tests read it."""

from dataclasses import dataclass
from typing import Any

from lodger.engine.core.errors import InputError


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """One default: its unit is in its name.

    Attributes:
        minimum, maximum: bounds of a number, whole if its default is.
    """

    name: str
    default: str | int | float
    help: str
    minimum: int = 0
    maximum: int = 0

    @property
    def range(self) -> str:
        """The allowed values of a number in words."""
        kind = "a number" if isinstance(self.default, float) else "a whole number"
        return f"{kind} from {self.minimum} to {self.maximum}"

    def require(self, code: str, value: object) -> None:
        """Raise InputError with this code unless a value is a number within the bounds."""
        kinds = int | float if isinstance(self.default, float) else int
        if isinstance(value, bool) or not isinstance(value, kinds) or not self.minimum <= value <= self.maximum:
            raise InputError(code, name=self.name, value=value, rule=self.range)


#: Longest wait between two tries: 30 days.
MAX_BACKOFF_S = 30 * 86_400
MAX_ATTEMPTS = 100
#: Longest wait before an action expires.
MAX_EXPIRY_S = 366 * 86_400


POLICIES: tuple[PolicySpec, ...] = (
    PolicySpec(
        "missed", "latest", "what happens to slots that were not ticked in time: skip, latest, all, within:DURATION"
    ),
    PolicySpec("missed_after_s", 10, "a slot is missed when its tick comes more than this many seconds after it"),
    PolicySpec(
        "catch_up_max", 1000, "maximum number of slots that one tick turns into actions; older ones become one gap row"
    ),
    PolicySpec(
        "overlap",
        "skip",
        "what happens to a slot while an earlier action is unfinished: skip, queue_one, queue_all, cancel_other, cancel_running, allow",
    ),
    PolicySpec("cancel_grace_s", 10, "how long a run may continue that a slot with overlap cancel_other replaces"),
    PolicySpec("queue_max", 1000, "maximum number of actions of one schedule that wait for their predecessors"),
    PolicySpec("attempts", 1, "maximum number of tries after failures of the script", 1, MAX_ATTEMPTS),
    PolicySpec("engine_attempts", 3, "maximum number of tries after failures of the engine", 1, MAX_ATTEMPTS),
    PolicySpec(
        "conflict_attempts", 3, "maximum number of repetitions of a step after write conflicts", 0, MAX_ATTEMPTS
    ),
    PolicySpec("backoff_s", 10.0, "wait before the second try", 0, MAX_BACKOFF_S),
    PolicySpec("backoff_factor", 2.0, "factor by which each further wait is longer", 1, MAX_BACKOFF_S),
    PolicySpec("backoff_max_s", 3600.0, "longest wait between two tries", 0, MAX_BACKOFF_S),
    PolicySpec("jitter_s", 0.0, "random delay of actions after their slot, always before the next slot", 0, 86_400),
    PolicySpec(
        "expires_s",
        0.0,
        "an action that has not started this long after its due time expires; 0: never",
        0,
        MAX_EXPIRY_S,
    ),
    PolicySpec("priority", "normal", "order of a tenant's actions: high, normal, low"),
    PolicySpec("pause_after", 0, "failed actions in a row after which the schedule is paused; 0: never", 0, 10_000),
    PolicySpec("labels", "", "labels that a node must have, such as highmem; node:NAME is the node of that name"),
    PolicySpec("placement", "any", "where a slot runs: any (one node), every_node (once on each with the labels)"),
    PolicySpec("backfill_max", 1000, "maximum number of actions of one backfill"),
)

BY_NAME = {spec.name: spec for spec in POLICIES}


def whole(name: str) -> int:
    """Return the default of a policy that is a whole number."""
    return int(BY_NAME[name].default)


def number(name: str) -> float:
    """Return the default of a policy that is a number."""
    return float(BY_NAME[name].default)


def word(name: str) -> Any:
    """Return the default of a policy that is a word."""
    return str(BY_NAME[name].default)

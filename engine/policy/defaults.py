"""Table of the policies' defaults; documentation and tests read it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """One default: its unit is in its name."""

    name: str
    default: str | int | float
    help: str


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
    PolicySpec("attempts", 1, "maximum number of tries after failures of the script"),
    PolicySpec("engine_attempts", 3, "maximum number of tries after failures of the engine"),
    PolicySpec("conflict_attempts", 3, "maximum number of repetitions of a step after write conflicts"),
    PolicySpec("backoff_s", 10.0, "wait before the second try"),
    PolicySpec("backoff_factor", 2.0, "factor by which each further wait is longer"),
    PolicySpec("backoff_max_s", 3600.0, "longest wait between two tries"),
    PolicySpec("jitter_s", 0.0, "random delay of actions after their slot, always before the next slot"),
    PolicySpec("expires_s", 0.0, "an action that has not started this long after its due time expires; 0: never"),
    PolicySpec("priority", "normal", "order of a tenant's actions: high, normal, low"),
    PolicySpec("pause_after", 0, "failed actions in a row after which the schedule is paused; 0: never"),
    PolicySpec("labels", "", "labels that a node must have, such as highmem; node:NAME is the node of that name"),
    PolicySpec("placement", "any", "where a slot runs: any (one node), every_node (once on each with the labels)"),
    PolicySpec("backfill_max", 1000, "maximum number of actions of one backfill"),
)

_BY_NAME = {spec.name: spec for spec in POLICIES}


def whole(name: str) -> int:
    """Return the default of a policy that is a whole number."""
    return int(_BY_NAME[name].default)


def number(name: str) -> float:
    """Return the default of a policy that is a number."""
    return float(_BY_NAME[name].default)


def word(name: str) -> Any:
    """Return the default of a policy that is a word."""
    return str(_BY_NAME[name].default)

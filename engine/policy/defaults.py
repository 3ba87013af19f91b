"""One table of everything a schedule decides for itself when nobody says otherwise; documentation and tests read it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """One default: its unit is in its name."""

    name: str
    default: str | int | float
    help: str


POLICIES: tuple[PolicySpec, ...] = (
    PolicySpec("missed", "latest", "what slots become that nobody ticked in time: skip, latest, all, within:DURATION"),
    PolicySpec("missed_after_s", 10, "a slot is missed when its tick comes more than this many seconds after it"),
    PolicySpec("catch_up_max", 1000, "most slots that one tick turns into runs; older ones become one gap row"),
    PolicySpec(
        "overlap",
        "skip",
        "an earlier action is unfinished: skip, queue_one, queue_all, cancel_other, cancel_running, allow",
    ),
    PolicySpec("cancel_grace_s", 10, "how long a run may go on that a slot with overlap cancel_other is to replace"),
    PolicySpec("queue_max", 1000, "most actions of one schedule that wait for their predecessors"),
    PolicySpec("attempts", 1, "tries of an action whose failures are the tenant's"),
    PolicySpec("engine_attempts", 3, "tries of an action whose failures are ours"),
    PolicySpec("conflict_attempts", 3, "times a step is run again because what it read had changed"),
    PolicySpec("backoff_s", 10.0, "wait before the second try"),
    PolicySpec("backoff_factor", 2.0, "each further wait is this many times longer"),
    PolicySpec("backoff_max_s", 3600.0, "longest wait between two tries"),
    PolicySpec("jitter_s", 0.0, "actions are due up to so much after their slot, never as late as the next slot"),
    PolicySpec("expires_s", 0.0, "an action that has not started so long after it was due expires; 0: never"),
    PolicySpec("priority", "normal", "which of a tenant's actions starts first: high, normal, low"),
    PolicySpec("pause_after", 0, "the schedule is paused after so many failed actions in a row; 0: never"),
    PolicySpec("labels", "", "what a node must carry to run it, such as highmem; node:NAME is the node of that name"),
    PolicySpec(
        "placement", "any", "where a slot runs: any (one node), every_node (once on each that carries the labels)"
    ),
    PolicySpec("backfill_max", 1000, "most slots that one backfill turns into actions"),
)

_BY_NAME = {spec.name: spec for spec in POLICIES}


def whole(name: str) -> int:
    """Give a default that is a whole number."""
    return int(_BY_NAME[name].default)


def number(name: str) -> float:
    """Give a default that is a number."""
    return float(_BY_NAME[name].default)


def word(name: str) -> str:
    """Give a default that is a word."""
    return str(_BY_NAME[name].default)

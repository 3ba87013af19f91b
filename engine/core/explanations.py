"""What each outcome of an attempt and each reason of an action means, and what to do: one table for ``lodger errors`` and its page."""

from dataclasses import dataclass

from lodger.sandbox.limits import LIMITS
from lodger.sandbox.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happened, and what to do."""

    what: str
    fix: str


_LOWER = "do less in one run, or ask the operator for a higher limit"

OUTCOMES: dict[Outcome, Explanation] = {
    Outcome.OK: Explanation("the attempt succeeded and its effects are committed", "nothing"),
    Outcome.SCRIPT_ERROR: Explanation("the script threw an error", "see the error's file and line; lodger action show"),
    Outcome.CPU_LIMIT: Explanation("the attempt used more CPU time than its limit", _LOWER),
    Outcome.WALL_LIMIT: Explanation(
        "the attempt took longer than its limit, waiting included",
        "wait for less, give requests a timeout, or raise the limit",
    ),
    Outcome.MEMORY_LIMIT: Explanation("the script held more memory than its limit", "read rows in pages; " + _LOWER),
    Outcome.STACK_LIMIT: Explanation("calls were nested too deeply", "replace the recursion by a loop"),
    Outcome.OUTPUT_LIMIT: Explanation("a result, or the arguments or the answer of a host call, was too large", _LOWER),
    Outcome.CALL_LIMIT: Explanation(
        "the script made more host calls than its limit", "use calls that take many rows at once; " + _LOWER
    ),
    Outcome.SOURCE_TOO_LARGE: Explanation("the script or module is larger than its limit", "make it smaller"),
    Outcome.COMPILE_ERROR: Explanation("the script is no valid program", "see the error's line; lodger script check"),
    Outcome.BAD_REQUEST: Explanation("the input is too large or nested too deeply", "give smaller params"),
    Outcome.DENIED: Explanation("the script asked for what the tenant has not been granted", "lodger grant give"),
    Outcome.EFFECT_REFUSED: Explanation(
        "the database refused an effect, so none was applied", "see the error: it names the table or the constraint"
    ),
    Outcome.CONFLICT: Explanation(
        "the data that the attempt had read was changed before it committed; none of its effects was applied",
        "nothing: it is tried again; lodger action retry",
    ),
    Outcome.CANCELLED: Explanation(
        "the action was cancelled while it ran; none of its effects was applied", "see the action's reason"
    ),
    Outcome.CRASHED: Explanation("the worker process died of what the script made it do", "report the script"),
    Outcome.PROTOCOL_ERROR: Explanation("the worker sent what no worker may send, and was killed", "report the script"),
    Outcome.WORKER_LOST: Explanation(
        "the worker or its node ended, by no fault of the script",
        "nothing: it is tried again; lodger node list shows the nodes",
    ),
    Outcome.ENGINE_FAULT: Explanation("a fault of Lodger's own", "report it with the node's log; lodger action retry"),
}

#: Reasons of an action (``reason``), and of one that is overdue (``why``).
REASONS: dict[str, Explanation] = {
    "missed": Explanation("no node ticked the slot in time, and the policy missed skips it", "lodger action backfill, or another policy"),
    "catch_up_max": Explanation("more slots were missed than are caught up at once", "lodger action backfill"),
    "caught_up": Explanation("the slot ran late, as the policy missed says", "nothing"),
    "overlap": Explanation("an earlier action of the schedule had not ended", "make it faster, or choose another overlap policy"),
    "queue_full": Explanation("too many actions of the schedule were waiting", "make them faster, or run the schedule less often"),
    "superseded": Explanation("a later slot of the schedule took its place", "nothing, or another overlap policy"),
    "paused": Explanation("the schedule was paused", "lodger schedule resume; lodger action backfill for the slots between"),
    "tenant_suspended": Explanation("the tenant was suspended", "lodger tenant resume; lodger action backfill for the slots between"),
    "failures": Explanation("the schedule was paused after pause_after failed actions in a row", "mend the script; lodger schedule resume"),
    "schedule_deleted": Explanation("the schedule was deleted", "nothing"),
    "expired": Explanation("it had not started expires_s after it was due", "more nodes or slots, or a longer expires_s"),
    "retried": Explanation("an operator let it continue after it had failed", "nothing"),
    "budget_runs": Explanation("the tenant's runs of the day (UTC) were used up", "lodger tenant usage; raise the limit runs_per_day"),
    "budget_cpu_s": Explanation("the tenant's CPU time of the day (UTC) was used up", "lodger tenant usage; raise the limit cpu_s_per_day"),
    "no_node": Explanation("no living node carries the labels", "lodger node list; start a node with LODGER_LABELS, or change the labels"),
    "node_gone": Explanation("the node that alone may run it has been away for a minute", "start that node again"),
    "node_memory": Explanation("the node has too little memory left for its limit", "lower memory_bytes, or give nodes more memory"),
    "node_long": Explanation("runs with a long wall_ms already hold half of the node's slots", "lower wall_ms, or start another node"),
    "predecessor": Explanation("an earlier action of the same schedule has not ended", "wait, or lodger action cancel the earlier one"),
    "concurrent_runs": Explanation("the tenant has as many runs at once as it may", "wait, or raise the limit concurrent_runs"),
    "unticked": Explanation("no node has turned the due slot into an action", "lodger node list; start lodger up"),
    "slots": Explanation("all slots of the nodes are taken", "wait, or start another node"),
}  # fmt: skip


def limits_of(outcome: Outcome) -> str:
    """Return the limits that end in an outcome, with their defaults; empty for one that has none."""
    if outcome is Outcome.OK:
        return ""
    return ", ".join(f"{spec.name} ({spec.help}; default {spec.default})" for spec in LIMITS if spec.outcome is outcome)

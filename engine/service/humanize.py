"""Durations, and reasons of waiting, for people."""

_UNITS = ((31_556_952, "y"), (86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def humanize_duration(seconds: float) -> str:
    """Return a duration in its two largest units, truncated: ``2 h 5 min``, ``350 ms``."""
    if seconds < 1:
        return f"{max(0, int(seconds * 1000))} ms"
    if seconds < 10:
        return f"{int(seconds * 10) / 10:g} s"
    left, words = int(seconds), []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            words.append(f"{count} {unit}")
        elif words:
            break
        if len(words) == 2:
            break
    return " ".join(words)


#: Why an action is overdue (``actions.overdue``), by its reason.
WAITS = {
    "predecessor": "the run before has not ended",
    "no_node": "no node carries its labels",
    "node_paused": "every node for it is paused",
    "node_clock": "the clock of every node for it is wrong",
    "concurrent_runs": "its tenant's limit of concurrent runs",
    "budget": "its tenant's budget of the day",
    "tenant_suspended": "its tenant is suspended",
    "script_suspended": "its script is suspended",
    "paused": "its schedule is paused",
    "lease_lost": "its node has lost its lease",
    "node_memory": "no node has enough free memory",
    "node_long": "every slot for long runs is taken",
    "unticked": "no node looks at its schedule",
    "slots": "no free slot",
}


#: Words for states, outcomes and reasons whose code does not say it in words.
WORDS = {
    "waiting_retry": "waits for a retry", "sealed": "effects are being applied", "script_error": "error in the script",
    "cpu_limit": "limit of CPU time", "wall_limit": "limit of wall time", "memory_limit": "limit of memory",
    "stack_limit": "limit of the stack", "output_limit": "limit of output", "call_limit": "limit of host calls",
    "compile_error": "does not compile", "bad_request": "input refused", "denied": "not granted",
    "crashed": "the sandbox crashed", "protocol_error": "the sandbox broke its protocol", "engine_fault": "fault of Lodger",
}  # fmt: skip


def words_of(code: str) -> str:
    """Return a state, outcome or reason in words."""
    return WORDS.get(code, code.replace("_", " "))

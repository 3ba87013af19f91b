"""Classes 11, 19 and 22: continuing after a limit, jobs queued before and after the answer, and keys with colliding hashes."""

from functools import partial

from lodger.escape.attack_files import attacks
from lodger.escape.case import Case, cases
from lodger.escape.evidence import host_saw, survives
from lodger.escape.runner import CPU
from lodger.sandbox.limits import MIB
from lodger.sandbox.outcome import Outcome

_SCRIPTS = attacks(__file__)

_CLOCKS = ("soft_stop", "cpu_watch", "rlimits")
_LIMITS = {"cpu_ms": 60, "wall_ms": 1200, "memory_bytes": 64 * MIB}


_CALL = "() => { bridge.call('nothing', 'late').catch(() => {}); }"

#: Four thousand keys of twelve characters with the same hash: h * 263 + c over pairs of characters.
_KEYS = (
    "const parts = []; for (let n = 0; n < 16; n++) { let s = ''; for (let b = 0; b < 4; b++) "
    "s += (n >> b) & 1 ? String.fromCharCode(1, 1000 - 263) : String.fromCharCode(0, 1000); parts.push(s); } "
    "const keys = []; for (const a of parts) for (const b of parts) for (const c of parts) keys.push(a + b + c); "
)


_endless = partial(cases, wall="cpu_timer", expect=CPU, behind=_CLOCKS, limits=_LIMITS)

CASES = [
    *_endless("A11", rows=_SCRIPTS["again"], story="The script tries to continue after its stop: no code of it is called then."),
    Case(
        "A11-calls",
        "host_calls",
        "calls after the last one that was allowed",
        "for (;;) { try { await bridge.call('nothing', 1); } catch {} finally { await bridge.call('nothing', 2).catch(() => {}); } }",
        (Outcome.CALL_LIMIT,),
        story="A refused call is caught and made again: the first one past the limit ends the attempt.",
        limits={"host_calls": 20},
    ),
    Case(
        "A11-stack",
        "guest_stack",
        "recursing anew out of the handler of a recursion that was too deep",
        "const f = () => { try { f(); } catch { f(); } }; f();",
        (Outcome.STACK_LIMIT, Outcome.SCRIPT_ERROR, Outcome.CPU_LIMIT),
        seen=survives,
        story="The handler of a stack overflow runs on the full stack.",
    ),
    *_endless("B19", rows=_SCRIPTS["jobs"], story="Jobs that queue jobs share one time limit."),
    *cases("B19-after", "one_verdict", _SCRIPTS["later"], lambda script: {"script": script.replace("CALL", _CALL) + " return 1;"}, says="a call after the answer, by {}", seen=host_saw(), story="Timers after the answer would call the host: the answer ends the worker.", limits={"host_calls": 60},),
    *_endless("B22", rows=_SCRIPTS["colliding"], of=lambda script: {"script": _KEYS + script}, story="Keys with colliding hashes make lookups linear; the time limit applies."),
]  # fmt: skip

"""Classes 23, 25 and 26: exhausting heap and stack by every kind of object that an engine counts differently.

The store's limit is the wall for the heap, with the kernel's limit on the worker's data behind it. Memory exhaustion is recognised by the
limit, not by the text of an error, which may be missing.
"""

from lodger.escape.attack_files import attacks
from lodger.escape.case import Case, cases
from lodger.escape.evidence import survives
from lodger.escape.runner import MEMORY
from lodger.sandbox.outcome import Outcome

_SCRIPTS = attacks(__file__)

_LIMITS = {"cpu_ms": 1500, "wall_ms": 20_000, "memory_bytes": 16 << 20}
_AGAIN = {**_LIMITS, "cpu_ms": 400}
_STACKS = {"cpu_ms": 1000, "wall_ms": 10_000}

#: Kinds that another wall may stop first, depending on the engine's version.
_ALSO = {
    "atoms": (Outcome.CPU_LIMIT,),
    "string-rope": (Outcome.CPU_LIMIT,),
    "array-from-async": (Outcome.CPU_LIMIT,),
    "listeners": (Outcome.CPU_LIMIT,),
    "structured-clone": (Outcome.CPU_LIMIT,),
    "symbol-for": (Outcome.CPU_LIMIT,),
    "text-encode": (Outcome.CPU_LIMIT,),
    "timers": (Outcome.CPU_LIMIT,),
    "retry": (Outcome.CPU_LIMIT, Outcome.SCRIPT_ERROR),
    "retry-hold": (Outcome.CPU_LIMIT,),
    "finally": (Outcome.CPU_LIMIT,),
    # With memory left, the script ends as usual.
    "retry-full-answer": (Outcome.OK,),
    "retry-full-error": (Outcome.SCRIPT_ERROR,),
    "retry-full-call": (Outcome.OK,),
    "regexp-backtrack": (Outcome.SCRIPT_ERROR, Outcome.STACK_LIMIT, Outcome.OK),
    "string-repeat": (Outcome.SCRIPT_ERROR,),
    "string-pad": (Outcome.SCRIPT_ERROR,),
    "array-buffer-one": (Outcome.SCRIPT_ERROR,),
    "buffer-resize": (Outcome.SCRIPT_ERROR,),
}

#: Kinds that exhaust the CPU time before the memory.
_SLOW = (
    "array-from-async",
    "atoms",
    "listeners",
    "string-rope",
    "structured-clone",
    "symbol-for",
    "text-encode",
    "timers",
)
_SLOW_LIMITS = {"cpu_ms": 100, "wall_ms": 6000, "memory_bytes": 16 << 20}

_STACK_EXPECT = (
    Outcome.STACK_LIMIT,
    Outcome.SCRIPT_ERROR,
    Outcome.OK,
    Outcome.MEMORY_LIMIT,
    Outcome.CPU_LIMIT,
)

CASES = [
    *(
        Case(
            f"B{25 if name.startswith(('retry', 'null', 'finally')) else 23}-{name}",
            "cpu_timer" if name in _SLOW else "store_limit",
            mechanism,
            script,
            (*MEMORY, *_ALSO.get(name, ())),
            story="The script allocates without end, in objects that an engine's counter may miss.",
            behind=("soft_stop", "cpu_watch", "rlimits", "store_limit") if name in _SLOW else ("rlimits",),
            limits=_SLOW_LIMITS if name in _SLOW else _AGAIN if name.startswith("retry") else _LIMITS,
        )
        for name, mechanism, script in _SCRIPTS["heap"]
    ),
    *cases(
        "B26",
        "guest_stack",
        _SCRIPTS["stack"],
        expect=_STACK_EXPECT,
        seen=survives,
        story="The engine's C code recurses: the guest's stack ends in a trap, the worker's is not affected.",
        limits=_STACKS,
    ),
]

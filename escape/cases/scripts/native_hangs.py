"""Classes 15 to 17: endless code, with and without checks of the engine's interrupt hook.

The built-ins of the second table never poll QuickJS's interrupt hook, so the engine's time limit cannot end them. Each of the two walls
outside the engine that can is tested alone.
"""

from collections.abc import Iterable
from typing import Any

from lodger.escape.attack_files import attacks
from lodger.escape.case import GUEST, SCRIPTS, Case
from lodger.escape.evidence import survives
from lodger.escape.runner import CPU
from lodger.sandbox.outcome import Outcome

_SCRIPTS = attacks(__file__)

_CLOCKS = ("soft_stop", "cpu_timer", "cpu_watch", "rlimits")
_LIMITS = {"cpu_ms": 60, "wall_ms": 1200, "memory_bytes": 64 << 20}


def _others(wall: str) -> tuple[str, ...]:
    """Return the clocks that could also stop a case, besides the one of its wall."""
    return tuple(name for name in _CLOCKS if name != wall)


def _cases(
    klass: int,
    wall: str,
    rows: Iterable[Any],
    story: str,
    mark: str = "",
    runtimes: tuple[str, ...] = SCRIPTS,
) -> list[Case]:
    """Return the cases of a table of endless scripts that one wall stops."""
    return [
        Case(
            f"B{klass}-{name}{mark}",
            wall,
            mechanism,
            script,
            CPU,
            story=story,
            behind=_others(wall),
            limits=_LIMITS,
            runtimes=runtimes,
        )
        for name, mechanism, script in rows
    ]


CASES = [
    *_cases(15, "soft_stop", _SCRIPTS["polled"], "Endless code that polls the interrupt handler."),
    *_cases(
        15,
        "cpu_timer",
        _SCRIPTS["polled"][:6],
        "The same without polling: the kernel's timer ends it.",
        "-by-kernel",
        GUEST,  # the native engine has no soft stop: the cases above cover it
    ),
    *_cases(
        16,
        "cpu_timer",
        _SCRIPTS["unpolled"],
        "A built-in that never polls gets endless work; the kernel's timer ends it.",
    ),
    *_cases(
        16,
        "cpu_watch",
        _SCRIPTS["unpolled"],
        "A built-in that never polls, without a timer in the worker: the parent's deadline ends it.",
        "-by-parent",
    ),
    *_cases(17, "cpu_timer", _SCRIPTS["late"], "Built-ins that poll late, called repeatedly."),
    Case(
        "B15-recursion",
        "guest_stack",
        "plain recursion",
        "const f = () => f() + 1; return f();",
        (Outcome.STACK_LIMIT, Outcome.SCRIPT_ERROR),
        seen=survives,
        story="Infinite recursion uses the guest's stack only.",
    ),
]

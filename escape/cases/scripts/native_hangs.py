"""Classes 15 to 17: endless code, with and without checks of the engine's interrupt hook.

The built-ins of the second table never poll QuickJS's interrupt hook, so the engine's time limit cannot end them. Each of the two walls
outside the engine that can is tested alone.
"""

from collections.abc import Iterable
from typing import Any

from lodger.escape.attack_files import attacks
from lodger.escape.case import GUEST, Case, cases
from lodger.escape.evidence import survives
from lodger.escape.runner import CPU
from lodger.sandbox.outcome import Outcome

_SCRIPTS = attacks(__file__)

_CLOCKS = ("soft_stop", "cpu_timer", "cpu_watch", "rlimits")
_LIMITS = {"cpu_ms": 60, "wall_ms": 1200, "memory_bytes": 64 << 20}


def _endless(number: int, wall: str, rows: Iterable[Any], story: str, **more: Any) -> list[Case]:
    """Return the cases of one clock; the other clocks stand behind it."""
    behind = tuple(name for name in _CLOCKS if name != wall)
    return cases(f"B{number}", wall, rows, story=story, expect=CPU, behind=behind, limits=_LIMITS, **more)


_POLLED, _UNPOLLED, _LATE = (_SCRIPTS[name] for name in ("polled", "unpolled", "late"))
CASES = [
    *_endless(15, "soft_stop", _POLLED, "Endless code that polls the interrupt handler."),
    *_endless(
        15,
        "cpu_timer",
        _POLLED[:6],
        "The same without polling: the kernel's timer ends it.",
        mark="-by-kernel",
        runtimes=GUEST,  # the native engine has no soft stop: the cases above cover it
    ),
    *_endless(16, "cpu_timer", _UNPOLLED, "A built-in that never polls gets endless work; the kernel's timer ends it."),
    *_endless(
        16,
        "cpu_watch",
        _UNPOLLED,
        "A built-in that never polls, without a timer in the worker: the parent's deadline ends it.",
        mark="-by-parent",
    ),
    *_endless(17, "cpu_timer", _LATE, "Built-ins that poll late, called repeatedly."),
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

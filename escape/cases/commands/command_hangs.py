"""Chapter I, classes 127 to 129 and 132: commands that never end, grow without end or recurse."""

from collections.abc import Callable

from lodger.escape.attack_files import attacks
from lodger.escape.case import COMMANDS, Case, commands
from lodger.escape.evidence import ends_as, in_time, survives, where
from lodger.escape.modules import command
from lodger.escape.runner import CPU, MEMORY
from lodger.sandbox.limits import MIB
from lodger.sandbox.outcome import Outcome

_WAT = attacks(__file__, ".wat")

_CLOCKS = ("cpu_timer", "cpu_watch", "rlimits")
_SHORT = {"cpu_ms": 60, "wall_ms": 1200}


_MANY_TABLES = "".join(f"(table $t{i} 90000 funcref)" for i in range(60))

_FRAMES = (
    f"(func $f (param i64) (result i64) (local{' i64' * 900}) (local.set 5 (local.get 0))"
    " (i64.add (call $f (i64.add (local.get 5) (i64.const 1))) (local.get 5)))"
)


def _wasm(body: str, **more: str) -> Callable[[], bytes]:
    """Return a function that assembles a command from its body."""
    return lambda: command(body, **more)


def _timed(klass: str, rows: tuple[tuple[str, str, Callable[[], bytes]], ...], story: str) -> list[Case]:
    """Return cases that must be stopped by a limit of time."""
    return [
        Case(
            f"{klass}-{name}{mark}",
            wall,
            mechanism,
            expect=CPU,
            story=story,
            behind=tuple(other for other in _CLOCKS if other != wall),
            limits=_SHORT,
            runtimes=COMMANDS,
            wasm=wasm,
        )
        for name, mechanism, wasm in rows
        for wall, mark in (("cpu_timer", ""), ("cpu_watch", "-by-parent"))
    ]


CASES = [
    *_timed(
        "I128",
        tuple((name, how, _wasm(body, **more)) for name, how, body, more in _WAT["loops"]),
        "An endless command is ended from outside.",
    ),
    *_timed(
        "I132",
        tuple((name, how, _wasm(f"(loop $l {body} (br $l))")) for name, how, body in _WAT["calls"]),
        "The host's time for a call counts as the command's.",
    ),
    *commands(
        "I132-sleep",
        "wall_clock",
        _WAT["waits"],
        lambda body: {"wasm": _wasm(body)},
        expect=(Outcome.WALL_LIMIT,),
        seen=in_time,
        story="A command that sleeps uses no CPU time; the parent's deadline ends it.",
        limits={"wall_ms": 150, "cpu_ms": 100},
    ),
    *commands(
        "I127",
        "store_limit",
        _WAT["growth"],
        lambda body, more: {"wasm": _wasm(body, **more)},
        expect=(Outcome.OK, *MEMORY, Outcome.SCRIPT_ERROR, *CPU),
        story="Linear memory is limited for every way of allocation.",
        behind=("rlimits",),
        limits={"memory_bytes": 16 * MIB, "cpu_ms": 1500, "wall_ms": 20_000},
    ),
    *commands(
        "I127",
        "table_limit",
        _WAT["tables"],
        lambda body, more: {"wasm": _wasm(body, **more)},
        seen=where("a table of at most a hundred thousand", lambda size: size <= 100_000),
        story="Tables use memory of the host that the memory limit does not count.",
        behind=("rlimits",),
        limits={"cpu_ms": 1500, "wall_ms": 20_000, "memory_bytes": 64 * MIB},
    ),
    Case(
        "I127-tables",
        "table_limit",
        "sixty tables",
        expect=MEMORY,
        seen=ends_as(Outcome.MEMORY_LIMIT),
        story="Tables use memory of the host that the memory limit does not count.",
        behind=("rlimits",),
        runtimes=COMMANDS,
        limits={"memory_bytes": 64 * MIB, "cpu_ms": 500},
        wasm=_wasm("(call $say (i32.const 1))", extra=_MANY_TABLES),
    ),
    *commands(
        "I129",
        "guest_stack",
        (
            *_WAT["recursion"],
            ("frames", "frames of nine hundred variables", "(drop (call $f (i64.const 1)))", {"extra": _FRAMES}),
        ),
        lambda body, more: {"wasm": _wasm(body, **more)},
        expect=(Outcome.STACK_LIMIT,),
        seen=survives,
        story="A command's recursion ends in a trap, not in the worker's memory.",
        limits={"cpu_ms": 500, "wall_ms": 3000},
    ),
]

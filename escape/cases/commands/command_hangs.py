"""Chapter I, classes 127 to 129 and 132: commands that never end, grow without end or recurse."""

from functools import partial

from lodger.escape.case import COMMANDS, Case
from lodger.escape.evidence import ends_as, survives, where
from lodger.escape.modules import command, commands_of
from lodger.escape.runner import MEMORY, STACK
from lodger.sandbox.limits import MIB
from lodger.sandbox.outcome import Outcome

_MANY_TABLES = "".join(f"(table $t{i} 90000 funcref)" for i in range(60))
_FRAMES = (
    f"(func $f (param i64) (result i64) (local{' i64' * 900}) (local.set 5 (local.get 0))"
    " (i64.add (call $f (i64.add (local.get 5) (i64.const 1))) (local.get 5)))"
)
_CHECKS = {"small_table": where("a table of at most a hundred thousand", lambda size: size <= 100_000)}

CASES = [
    *commands_of(__file__, checks=_CHECKS),
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
        wasm=partial(command, "(call $say (i32.const 1))", extra=_MANY_TABLES),
    ),
    Case(
        "I129-frames",
        "guest_stack",
        "frames of nine hundred variables",
        expect=STACK,
        seen=survives,
        story="A command's recursion ends in a trap, not in the worker's memory.",
        runtimes=COMMANDS,
        limits={"cpu_ms": 500, "wall_ms": 3000},
        wasm=partial(command, "(drop (call $f (i64.const 1)))", extra=_FRAMES),
    ),
]

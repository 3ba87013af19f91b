"""Classes 24 and 27 for commands: floods of standard output and standard error, limited on both sides of the socket."""

from collections.abc import Callable

from lodger.escape.case import COMMANDS, Case
from lodger.escape.evidence import both, ends_as, marked, survives
from lodger.escape.modules import command, data
from lodger.escape.runner import CPU
from lodger.sandbox.outcome import Outcome

_FLOOD = "(loop $l (call $out (i32.const {fd}) (i32.const 1024) (i32.const {size})) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {times}))))"
OUTPUTS = (
    ("bytes", "a megabyte of digits", 1000, 1000),
    ("single", "four thousand single digits", 1, 4200),
    ("one-more", "one byte too many", 4097, 1),
)
LOGS = (
    ("lines", "ten thousand lines", "x\\n", 2, 10_000),
    ("long", "a line of a million characters", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 32, 30_000),
    ("binary", "lines of control characters and invalid UTF-8", "\\1b[2J\\ff\\fe\\00\\n", 8, 2000),
)
_LOG_LIMITS = {"log_lines": 50, "log_bytes": 4096, "log_line_bytes": 256, "cpu_ms": 500, "wall_ms": 3000}


def _wasm(body: str, text: str) -> Callable[[], bytes]:
    """Return a function that assembles a command from its body and data."""
    return lambda: command(body, extra=data(1024, text), locals_="(local $i i32)")


CASES = [
    *(
        Case(
            f"B24-command-{name}{mark}",
            wall,
            f"standard output: {mechanism}",
            expect=(Outcome.OUTPUT_LIMIT,),
            seen=both(survives, ends_as(Outcome.OUTPUT_LIMIT)),
            story="A large result is stopped before it is copied.",
            behind=(other,),
            limits={"result_bytes": 4096, "cpu_ms": 1500, "wall_ms": 4000},
            runtimes=COMMANDS,
            wasm=_wasm(_FLOOD.format(fd=1, size=size, times=times), "1" * size),
        )
        for name, mechanism, size, times in OUTPUTS
        for wall, other, mark in (
            ("worker_output", "parent_output", ""),
            ("parent_output", "worker_output", "-by-parent"),
        )
    ),
    *(
        Case(
            f"B27-command-{name}{mark}",
            wall,
            f"standard error: {mechanism}",
            expect=(Outcome.OK, *CPU),
            seen=marked,
            story="The log is cut at its limit, with a note.",
            behind=(other,),
            limits=_LOG_LIMITS,
            runtimes=COMMANDS,
            wasm=_wasm(_FLOOD.format(fd=2, size=size, times=times), text),
        )
        for name, mechanism, text, size, times in LOGS
        for wall, other, mark in (("parent_log", "worker_log", ""), ("worker_log", "parent_log", "-in-worker"))
    ),
]

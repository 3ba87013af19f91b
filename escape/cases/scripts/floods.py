"""Classes 24, 27, 28 and 33: floods of output, of calls and of time.

A limit that worker and parent enforce is tested on each side alone: the parent's must hold if the worker ignores its own.
"""

from lodger.escape.attack_files import attacks
from lodger.escape.case import cases
from lodger.escape.evidence import ends_as, in_time, marked
from lodger.sandbox.outcome import Outcome

_SCRIPTS = attacks(__file__)

_RESULT = {"result_bytes": 4096, "cpu_ms": 1500, "wall_ms": 4000}

_LOG = {"log_lines": 50, "log_bytes": 4096, "log_line_bytes": 256, "cpu_ms": 500, "wall_ms": 3000}
_LOGGED = (Outcome.OK, Outcome.CPU_LIMIT, Outcome.MEMORY_LIMIT)

_CALLS = {"host_calls": 20, "cpu_ms": 1000, "wall_ms": 3000}

_WAIT = {"wall_ms": 150, "cpu_ms": 100}

_INPUTS = (
    ("text", "one long text", '{"action":{"id":"escape"},"x":"' + "x" * 70_000 + '"}'),
    ("wide", "characters of three bytes", '{"action":{"id":"escape"},"x":"' + "\u4e00" * 25_000 + '"}'),
    ("list", "a long list", '{"action":{"id":"escape"},"x":[' + "0," * 35_000 + "0]}"),
)

CASES = [
    *cases(
        "B24-input",
        "input_bytes",
        _INPUTS,
        lambda context: {"context": context},
        says="an input that is too large: {}",
        script="return 1;",
        expect=(Outcome.BAD_REQUEST,),
        seen=ends_as(Outcome.BAD_REQUEST),
        story="An input that is too large reaches no worker.",
        limits={"input_bytes": 65_536},
    ),
    *cases(
        "B24",
        "worker_output",
        _SCRIPTS["results"],
        expect=(Outcome.OUTPUT_LIMIT,),
        story="A large result is stopped before it is copied.",
        behind=("parent_output",),
        limits=_RESULT,
    ),
    *cases(
        "B24",
        "parent_output",
        _SCRIPTS["results"],
        mark="-by-parent",
        expect=(Outcome.OUTPUT_LIMIT,),
        story="A worker that ignores its limit is stopped by the parent's.",
        behind=("worker_output",),
        limits=_RESULT,
    ),
    *cases(
        "B27",
        "parent_log",
        _SCRIPTS["logs"],
        expect=_LOGGED,
        seen=marked,
        story="The log is cut at its limit, with a note.",
        behind=("worker_log",),
        limits=_LOG,
    ),
    *cases(
        "B27",
        "worker_log",
        _SCRIPTS["logs"],
        mark="-in-worker",
        expect=_LOGGED,
        seen=marked,
        story="The worker stops a flood before it is sent.",
        behind=("parent_log",),
        limits=_LOG,
    ),
    *cases(
        "B28",
        "host_calls",
        _SCRIPTS["calls"],
        expect=(Outcome.CALL_LIMIT,),
        story="Calls are counted by the parent; what a script catches or ignores does not matter.",
        limits=_CALLS,
    ),
    *cases(
        "B33",
        "wall_clock",
        _SCRIPTS["waits"],
        expect=(Outcome.WALL_LIMIT,),
        seen=in_time,
        story="A script that only waits uses no CPU time; the parent's deadline ends it.",
        limits=_WAIT,
    ),
]

"""WebAssembly commands in the real sandbox: streams, results of WASI calls, and errors."""

import pytest
from tests.escape.commands import Commands, command, data, no_leaks, wasm
from tests.escape.probing import Echo

from lodger.sandbox import Outcome

__all__ = ["no_leaks", "wasm"]

OPEN = (
    "(call $path_open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)"
    " (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 100))"
)
BADF, FAULT, INVAL, NOSYS, NOTSOCK, SPIPE = 8, 21, 28, 52, 57, 70


_ENDLESS = "(loop $l (br $l))"
_CHARACTER_BY_CHARACTER = " ".join(
    f"(call $out (i32.const 2) (i32.const {1024 + at}) (i32.const 1))" for at in range(12)
)


@pytest.mark.parametrize(
    ("writes", "limits"),
    [
        ("(call $out (i32.const 2) (i32.const 1024) (i32.const 12))", {"cpu_ms": 30_000, "wall_ms": 2000}),
        (_CHARACTER_BY_CHARACTER, {"cpu_ms": 100}),
    ],
    ids=["whole, at its wall limit", "by characters, at its CPU limit"],
)
def test_a_stopped_command_keeps_its_unfinished_line(wasm: Commands, writes: str, limits: dict[str, int]) -> None:
    host = Echo()
    report = wasm(command(writes + _ENDLESS, extra=data(1024, "hello\\nhalf a")), host=host, **limits)
    assert report.outcome in (Outcome.CPU_LIMIT, Outcome.WALL_LIMIT)
    assert [(line.level, line.text) for line in report.logs] == [("info", "hello"), ("info", "half a… [cut]")]
    assert host.lines == list(report.logs)


@pytest.mark.parametrize("end", ["", "(unreachable)"], ids=["ends", "traps"])
def test_a_line_that_the_command_itself_leaves_open_is_whole(wasm: Commands, end: str) -> None:
    report = wasm(command(_CHARACTER_BY_CHARACTER + end, extra=data(1024, "hello\\nhalf a")))
    assert [line.text for line in report.logs] == ["hello", "half a"]


def test_a_line_after_too_many_parts_is_marked_as_cut_too(wasm: Commands) -> None:
    """The number of frames for unfinished lines is limited; beyond it only the mark is kept."""
    write = "(call $out (i32.const 2) (i32.const 1024) (i32.const 1))"
    begun = command(f"(loop $l {write} {_ENDLESS.replace('$l', '$m')} (br $l))", extra=data(1024, "x"))
    assert [line.text for line in wasm(begun, cpu_ms=100).logs] == ["x… [cut]"]
    many = (
        f"(local.set $i (i32.const 0)) (loop $l {write} (local.set $i (i32.add (local.get $i) (i32.const 1)))"
        f" (br_if $l (i32.lt_u (local.get $i) (i32.const 1200))))"
        "(call $out (i32.const 2) (i32.const 1025) (i32.const 2))"
    )
    stopped = wasm(
        command(many + _ENDLESS.replace("$l", "$m"), extra=data(1024, "x\\nx"), locals_="(local $i i32)"), cpu_ms=1000
    )
    assert stopped.outcome is Outcome.CPU_LIMIT
    assert [line.text for line in stopped.logs] == ["x" * 1200, "… [cut]"]


def test_a_silent_command_gives_null(wasm: Commands) -> None:
    assert wasm(command("")).result == "null"


def test_every_run_is_fresh(wasm: Commands) -> None:
    counting = command("(i32.store (i32.const 100) (i32.add (i32.load (i32.const 100)) (i32.const 1)))"
                       "(call $say (i32.load (i32.const 100)))")  # fmt: skip
    before = wasm.pool.compiler.compiled
    assert [wasm(counting).result for _ in range(3)] == ["1"] * 3
    assert wasm.pool.compiler.compiled == before + 1


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("(call $args_sizes_get (i32.const 100) (i32.const 104))", 0),
        ("(i32.add (call $args_sizes_get (i32.const 100) (i32.const 104)) (i32.load (i32.const 100)))", 0),
        ("(i32.add (call $environ_sizes_get (i32.const 100) (i32.const 104)) (i32.load (i32.const 104)))", 0),
        ("(call $fd_prestat_get (i32.const 3) (i32.const 100))", BADF),
        (OPEN, BADF),
        ("(call $fd_fdstat_get (i32.const 1) (i32.const 100))", 0),
        ("(call $fd_fdstat_get (i32.const 4) (i32.const 100))", BADF),
        ("(call $fd_seek (i32.const 1) (i64.const 0) (i32.const 0) (i32.const 100))", SPIPE),
        ("(call $fd_close (i32.const 2))", 0),
        ("(call $fd_close (i32.const 9))", BADF),
        ("(call $sock_send (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 100))", NOTSOCK),
        ("(call $sock_send (i32.const 5) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 100))", BADF),
        ("(call $proc_raise (i32.const 9))", NOSYS),
        ("(call $clock_time_get (i32.const 2) (i64.const 0) (i32.const 100))", INVAL),
        ("(call $poll_oneoff (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))", INVAL),
        ("(call $fd_write (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 100))", BADF),
        ("(call $fd_write (i32.const 1) (i32.const 0) (i32.const 1025) (i32.const 100))", INVAL),
        # pointers and lengths outside the memory
        ("(call $fd_write (i32.const 1) (i32.const -8) (i32.const 1) (i32.const 100))", FAULT),
        ("(call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 65533))", FAULT),
        ("(call $fd_read (i32.const 0) (i32.const 65530) (i32.const 1) (i32.const 100))", FAULT),
        ("(call $random_get (i32.const 65000) (i32.const 1000))", FAULT),
        ("(call $random_get (i32.const 0) (i32.const -1))", FAULT),
        ("(call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 65529))", FAULT),
        ("(call $poll_oneoff (i32.const 65000) (i32.const 0) (i32.const 64) (i32.const 0))", FAULT),
    ],
)  # fmt: skip
def test_what_wasi_answers(wasm: Commands, call: str, answer: int) -> None:
    report = wasm(command(f"(call $say {call})"))
    assert (report.outcome, report.result) == (Outcome.OK, str(answer)), report


def test_clock_counts_milliseconds_from_the_header(wasm: Commands) -> None:
    clock = "(drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 200)))"
    seconds = "(call $say (i32.wrap_i64 (i64.div_u (i64.load (i32.const 200)) (i64.const 1000000000))))"
    assert wasm(command(clock + seconds), now_us=1_700_000_000_000_000).result == "1700000000"
    fine = "(call $say (i32.wrap_i64 (i64.rem_u (i64.load (i32.const 200)) (i64.const 1000000))))"
    assert {wasm(command(clock + fine)).result for _ in range(5)} == {"0"}


def test_each_worker_draws_its_own_numbers(wasm: Commands) -> None:
    draw = command("(drop (call $random_get (i32.const 200) (i32.const 4))) (call $say (i32.load (i32.const 200)))")
    assert len({wasm(draw).result for _ in range(20)}) == 20


def test_sleep_is_wall_time(wasm: Commands) -> None:
    sleep = (
        "(i32.store8 (i32.const 108) (i32.const 0)) (i32.store (i32.const 116) (i32.const 1))"
        "(i64.store (i32.const 124) (i64.const 80000000))"
        "(call $say (call $poll_oneoff (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 300)))"
    )
    report = wasm(command(sleep))
    assert report.result == "0"
    assert report.usage.wall_ms >= 80
    assert report.usage.cpu_ms < 40


@pytest.mark.parametrize("code", [1, 3, 255, 2**31])
def test_exit_code_is_told(wasm: Commands, code: int) -> None:
    report = wasm(command(f"(call $out (i32.const 1) (i32.const 1024) (i32.const 1)) (call $proc_exit (i32.const {code}))",
                          extra=data(1024, "7")))  # fmt: skip
    assert (report.outcome, report.result) == (Outcome.SCRIPT_ERROR, None)
    assert report.error is not None
    assert report.error.name == "ExitCode"
    assert report.error.message.endswith(f"exit code {code}")


def test_exit_code_zero_is_an_end_like_any_other(wasm: Commands) -> None:
    assert wasm(command("(call $say (i32.const 42)) (call $proc_exit (i32.const 0)) unreachable")).result == "42"


@pytest.mark.parametrize(
    ("text", "outcome", "name"),
    [
        ("abc", Outcome.SCRIPT_ERROR, "BadResult"),
        ("{}{}", Outcome.SCRIPT_ERROR, "BadResult"),
        ("NaN", Outcome.SCRIPT_ERROR, "BadResult"),
        ("\\ff", Outcome.SCRIPT_ERROR, "BadResult"),
        ("[" * 65 + "]" * 65, Outcome.BAD_REQUEST, "BadRequest"),
    ],
)
def test_a_result_must_be_json(wasm: Commands, text: str, outcome: Outcome, name: str) -> None:
    size = 1 if text.startswith("\\") else len(text)
    report = wasm(command(f"(call $out (i32.const 1) (i32.const 1024) (i32.const {size}))", extra=data(1024, text)))
    assert report.outcome is outcome
    assert report.result is None
    assert report.error is not None
    assert report.error.name == name


TRAPS = {
    "unreachable": "unreachable",
    "(drop (i32.load (i32.const -4)))": "out of bounds memory access",
    "(drop (i32.div_s (i32.const 1) (i32.const 0)))": "integer division by zero",
    "(drop (i32.div_s (i32.const -2147483648) (i32.const -1)))": "integer overflow",
    "(drop (i32.trunc_f32_s (f32.const nan)))": "number out of range of an integer",
    "(call_indirect (i32.const 0))": "indirect call to null",
    "(call_indirect (param i32) (i32.const 0) (i32.const 1))": "indirect call to a function of another type",
    "(call_indirect (i32.const 9))": "out of bounds table access",
}


@pytest.mark.parametrize("body", TRAPS)
def test_a_trap_has_its_name_and_place(wasm: Commands, body: str) -> None:
    report = wasm(
        command(f"(call $inner) {''}", extra=f"(table 4 funcref) (elem (i32.const 1) $start) (func $inner {body})")
    )
    assert report.outcome is Outcome.SCRIPT_ERROR
    assert report.error is not None
    assert report.error.name == "Trap"
    assert report.error.message.startswith(TRAPS[body] + " in inner (#")
    inner, start = report.error.stack.split("\n")
    assert inner.startswith("at inner (#")
    assert " at byte 0x" in inner
    assert start.startswith("at start (#")

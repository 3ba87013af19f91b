"""Each limit ends the run with its own outcome; without the limit the same script does something else."""

import time

import pytest

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    "source",
    [
        "for (;;);",
        "try { for (;;); } finally { for (;;); }",
        "for (;;) { try { for (;;); } catch {} }",
        "const f = async () => { for (;;) await null }; await f()",
        "return { toJSON() { for (;;); } }",
        "throw { get message() { for (;;); } }",
        "throw new Proxy({}, { get() { for (;;); } })",
        "return /(a+)+$/.test('a'.repeat(40) + 'b')",
    ],
)
def test_cpu(run, source: str) -> None:
    start = time.monotonic_ns()
    reported = run("console.log('before')\n" + source, cpu_ms=50, memory_bytes=256 << 20)
    assert reported.outcome == "cpu_limit"
    assert "50 ms" in reported.error["message"]
    assert reported.lines == ["before"]
    assert time.monotonic_ns() - start < 20 * SECOND


def test_cpu_says_where_and_what_came_last(run) -> None:
    reported = run(
        "async function spin(echo) {\n  await echo.ask(1)\n  for (;;) Math.abs(1)\n}\nexport default ({ echo }) => spin(echo)",
        cpu_ms=50,
    )
    assert "spin" in reported.error["stack"]
    assert "echo.ask" in reported.error["message"]
    assert reported.error["line"] == 3


def test_a_quick_script_is_not_stopped(run) -> None:
    assert run("let n = 0; for (let i = 0; i < 1e5; i++) n += i; return n", cpu_ms=2000).result == 4999950000


@pytest.mark.parametrize(
    "source",
    [
        "const a = []; for (;;) a.push({ a: [1, 2, 3] })",
        "const a = []; for (;;) a.push(new ArrayBuffer(1e6))",
        "const a = []; for (;;) a.push('x'.repeat(1e6) + a.length)",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})",
        "return 'x'.repeat(20e6)",
        "const a = []; try { for (;;) a.push(new ArrayBuffer(1e5)) } catch {} ; for (;;) a.push({})",
    ],
)
def test_memory(run, source: str) -> None:
    reported = run(source, memory_bytes=24 << 20, cpu_ms=20_000)
    assert reported.outcome in {"memory_limit", "output_limit" if "repeat(20e6)" in source else ""}
    assert reported.status == 0


def test_memory_below_the_limit(run) -> None:
    source = "const a = []; for (let i = 0; i < 40; i++) a.push(new ArrayBuffer(1e6)); return a.length"
    assert run(source, memory_bytes=64 << 20).result == 40
    assert run(source, memory_bytes=24 << 20).outcome == "memory_limit"


def test_memory_can_be_caught_and_the_run_goes_on(run) -> None:
    reported = run("try { new ArrayBuffer(1e9) } catch (e) { return e.message }")
    assert reported.result == "out of memory"


def test_memory_so_short_that_the_failure_cannot_be_said(run) -> None:
    reported = run("for (;;) setTimeout(() => {}, 1e6)", memory_bytes=16 << 20, cpu_ms=20_000)
    assert reported.outcome == "memory_limit"
    assert "16 MiB" in reported.error["message"]


def test_memory_given_back_is_room_to_go_on(run) -> None:
    reported = run(
        "let all = []; try { for (;;) all.push({}) } catch {} all = null;"
        "await new Promise((wake) => setTimeout(wake, 1)); return 1",
        memory_bytes=16 << 20,
        cpu_ms=20_000,
    )
    assert reported.result == 1


@pytest.mark.parametrize(
    "source",
    [
        "const f = () => f() + 1; f()",
        "const f = async () => { await f() }; await f()",
        "JSON.parse('['.repeat(1e6))",
        "new Function('return ' + '('.repeat(1e5))",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a",
        "const o = { get x() { return this.x } }; o.x",
        "if (0) {} else " * 16_000 + "{} return 1",  # the parser's frames wrap below the guest's memory
    ],
)
def test_stack(run, source: str) -> None:
    reported = run(source, cpu_ms=20_000)
    assert reported.outcome == "stack_limit"
    assert "nested" in reported.error["message"]


def test_a_deep_but_finite_recursion(run) -> None:
    assert run("const f = (n) => (n === 0 ? 0 : 1 + f(n - 1)); return f(500)").result == 500


def test_log_lines(run) -> None:
    reported = run("for (let i = 0; i < 500; i++) console.log(i)", log_lines=3)
    assert reported.lines == ["0", "1", "2"]
    assert reported.dropped == 497
    assert run("console.log(1)", log_lines=3).dropped == 0


def test_log_lines_before_an_error_are_counted_too(run) -> None:
    reported = run("for (let i = 0; i < 5; i++) console.log(i); throw new Error('x')", log_lines=2)
    assert (len(reported.logs), reported.dropped) == (2, 3)
    reported = run("for (let i = 0; i < 5; i++) console.log(i); for (;;);", log_lines=2, cpu_ms=50)
    assert (len(reported.logs), reported.dropped) == (2, 3)


def test_log_line_bytes(run) -> None:
    (line,) = run("console.log('ä'.repeat(1000))", log_line_bytes=101).lines
    assert len(line.encode()) <= 101
    assert line.endswith("…")
    assert run("console.log('ä'.repeat(50))", log_line_bytes=101).lines == ["ä" * 50]


def test_log_bytes(run) -> None:
    reported = run("for (let i = 0; i < 50; i++) console.log('x'.repeat(100))", log_bytes=1000)
    assert (len(reported.logs), reported.dropped) == (10, 40)


def test_a_huge_log_line_does_not_hurt(run) -> None:
    reported = run("console.log('x'.repeat(20e6)); return 1", cpu_ms=20_000)
    assert reported.result == 1
    assert len(reported.lines[0]) < 10_000


def test_the_smallest_limits_still_run_a_trivial_script(run) -> None:
    assert (
        run(
            "console.log({ a: 1 }); return 1", memory_bytes=8 << 20, cpu_ms=10, result_bytes=4, log_line_bytes=16
        ).result
        == 1
    )

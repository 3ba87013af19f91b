"""Every limit on every runtime, with programs that need just more than, exactly, and just less than it."""

import pytest
from tests.cases import one_by_one
from tests.limits.machine import MIB, RUNTIMES, Machine
from tests.limits.programs import ENDLESS, LOG, PAGE, ROWS, LogRow, Row, holding

from lodger.sandbox import Outcome, Report
from lodger.sandbox.limits import LIMITS
from lodger.sandbox.walls.syscalls import MACHINE

OK = Outcome.OK
OUTCOME = {spec.name: spec.outcome for spec in LIMITS}


@one_by_one("row", ROWS)
def test_exactly(any_runtime: Machine, row: Row) -> None:
    program = row.program(any_runtime.name)
    if program is None:
        assert row.why, "a runtime without this limit says why"
        return
    reports = [any_runtime(program, context=row.context, **{row.name: row.needs + by}) for by in (-1, 0, 1)]
    assert [report.outcome for report in reports] == [OUTCOME[row.name], OK, OK], reports
    assert reports[0].error is not None
    assert reports[0].error.message
    assert reports[0].result is None


def test_every_row_of_the_table_is_here_for_every_runtime() -> None:
    rows = {row.name: {runtime for runtime in RUNTIMES if row.program(runtime) is not None or row.why} for row in ROWS}
    rows |= {name: set(RUNTIMES) for name in (*(row.name for row in LOG), *ENDLESS, "memory_bytes")}
    assert rows == {spec.name: set(RUNTIMES) for spec in LIMITS}
    assert all(row.script is not None or row.module is not None for row in ROWS), "each limit is some runtime's"


def test_a_result_counts_in_bytes_not_in_letters(js: Machine) -> None:
    found = [js("return 'ä'.repeat(499)", result_bytes=1000 + by).outcome for by in (-1, 0, 1)]
    assert found == [Outcome.OUTPUT_LIMIT, OK, OK]


@one_by_one("name", ["cpu_ms", "wall_ms"])
def test_time(any_runtime: Machine, name: str) -> None:
    limit = 199
    script, module = ENDLESS[name]
    program: str | bytes = module if any_runtime.name == "wasm" else script
    report = any_runtime(program, **{"cpu_ms": 10_000, "wall_ms": 20_000, name: limit})
    assert report.outcome is OUTCOME[name]
    assert report.error is not None
    assert f"{limit} ms" in report.error.message
    used = report.usage.cpu_ms if name == "cpu_ms" else report.usage.wall_ms
    tick = 10 if name == "cpu_ms" else 0  # tick of the kernel's CPU clock
    assert limit - tick <= used <= limit + 20 * 100, "a gross bound: lodger bench walls asserts the promise"
    short = holding(any_runtime.name, 2)
    assert any_runtime(short, **{"cpu_ms": 10_000, "wall_ms": 20_000, name: limit + 1000}).outcome is OK


def test_memory(any_runtime: Machine) -> None:
    """The smallest limit under which a program can use 16 MiB is exact to a page of WebAssembly."""
    program = holding(any_runtime.name, 256)
    low, high = 16 * MIB // PAGE - 1, 40 * MIB // PAGE
    assert any_runtime(program, memory_bytes=high * PAGE).outcome is OK
    while high - low > 1:
        middle = (low + high) // 2
        if any_runtime(program, memory_bytes=middle * PAGE).outcome is OK:
            high = middle
        else:
            low = middle
    for pages, outcome in ((high - 1, Outcome.MEMORY_LIMIT), (high, OK), (high + 1, OK)):
        for _ in range(3):
            report = any_runtime(program, memory_bytes=pages * PAGE)
            assert report.outcome is outcome, (pages, report)
            if outcome is OK:
                assert report.result == "256"
    # The limit includes the realm, the engine's tables and the allocator's rounding.
    assert high * PAGE <= {"wasm": 16, "quickjs": 24, "quickjs-native": 24}[any_runtime.name] * MIB


def log_texts(report: Report) -> tuple[str, ...]:
    assert report.outcome is OK
    return tuple(line.text for line in report.logs)


@one_by_one("row", LOG)
def test_logs_are_cut_and_marked(any_runtime: Machine, row: LogRow) -> None:
    assert OUTCOME[row.name] is OK, "what is over is cut, and the run goes on"
    below, at, above = (any_runtime(row.program(any_runtime.name), **{row.name: row.needs + by}) for by in (-1, 0, 1))
    assert log_texts(at) == log_texts(above) == row.whole
    assert at.dropped_logs == above.dropped_logs == 0
    assert log_texts(below) != row.whole
    assert below.dropped_logs or "…" in log_texts(below)[-1]


def test_small_frames_bound_calls_and_nothing_else(js: Machine) -> None:
    """Errors, log lines and results have their own limits and may be longer than a call's arguments."""
    assert js("return 'x'.repeat(20000)", frame_bytes=4096).outcome is OK
    assert js("console.log('x'.repeat(8000)); return 1", frame_bytes=4096).logs[0].text == "x" * 8000
    report = js("throw new Error('x'.repeat(20000))", frame_bytes=4096)
    assert report.outcome is Outcome.SCRIPT_ERROR
    assert report.error is not None
    assert report.error.message.startswith("xxx")
    deep = "function " + "f" * 200 + "(n) { if (n) " + "f" * 200 + "(n - 1); else throw new Error('end') }"
    assert js(deep + "\n" + "f" * 200 + "(60)", frame_bytes=4096).outcome is Outcome.SCRIPT_ERROR


def test_an_error_without_room_for_its_message_is_the_memorys(js: Machine) -> None:
    """The engine's out-of-memory error is a memory_limit; an imitation by a script is an ordinary error."""
    full = "let e; const a = []; try { for (;;) a.push(new Uint8Array(65536), {}) } catch (x) { e = x } throw e"
    assert js(full, memory_bytes=16 * MIB).outcome is Outcome.MEMORY_LIMIT
    forged = "throw Object.assign(new Error(''), { name: 'InternalError' })"
    assert js(forged, memory_bytes=16 * MIB).outcome is Outcome.SCRIPT_ERROR


@one_by_one(
    ("source", "line"),
    [
        ("const a = [];\nfor (;;) a.push('x'.repeat(1000) + a.length);", 2),
        ("const n = 2 ** 29;\nreturn 'x'.repeat(n);", 2),
        ("const n = 1e9;\n\nreturn new Uint8Array(n);", 3),
        ("const m = new Map();\nfor (let i = 0; ; i++) m.set(i, { i });", 2),
        ("const a = [];\nfor (;;)\n  a.push(Promise.resolve({}));", 3),
    ],
)
def test_exceeded_memory_has_the_limit_and_the_last_known_line(js: Machine, source: str, line: int) -> None:
    if js.name != "quickjs":
        pytest.skip("the native engine tells its place only where it had memory for an error")
    report = js(source, memory_bytes=16 * MIB, cpu_ms=10_000)
    assert (report.outcome, report.error and report.error.line) == (Outcome.MEMORY_LIMIT, line), report
    assert "more than 16 MiB of memory" in (report.error.message if report.error else "")


@one_by_one(
    "loop",
    [
        "[].indexOf.call({ length: 2 ** 53 - 1 }, 1)",
        "[].reverse.call({ length: 2 ** 53 - 1 })",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        "for (const a = new Uint8Array(4e6); ; ) a.fill(3)",
        "for (const a = 'ab'.repeat(1e5); ; ) a.replaceAll('a', 'bc').split('c')",
        "for (let a = 3n ** 200000n; ; ) a = a / 7n * 7n",
    ],
)
def test_a_loop_inside_of_a_built_in_function_has_its_line_and_the_last_call(js: Machine, loop: str) -> None:
    if js.name != "quickjs" or MACHINE != "x86_64":
        pytest.skip("only the handler in machine code interrupts a built-in function")
    report = js(f"await kv.get('a');\n{loop};", cpu_ms=150)
    assert (report.outcome, report.error and report.error.line) == (Outcome.CPU_LIMIT, 2), report
    assert "150 ms of CPU time; its last call was kv.get" in (report.error.message if report.error else "")


@one_by_one(
    ("source", "line"),
    [
        ("while(true){}", 1),
        ("let a = 1;\n\nfor (;;) a += 1;", 3),
        ("export default () => {\n  [1].map(String);\n  while (true) {}\n};", 3),
        ("// first\ndo { } while (true);\nexport default 1;", 2),
        ("for (;;) {\n  [1].map(String);\n}\nwhile (true);", 2),
    ],
)
def test_an_endless_loop_has_its_line_wherever_it_stands(js: Machine, source: str, line: int) -> None:
    if js.name != "quickjs":
        pytest.skip("the native engine knows places of calls only")
    report = js(source, cpu_ms=60)
    assert (report.outcome, report.error and report.error.line) == (Outcome.CPU_LIMIT, line), report

"""JavaScript in the real sandbox: each limit ends a script with its own outcome, and does not affect the next run."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from tests.escape.probing import Echo

from lodger.sandbox import Bundle, Job, Limits, Outcome, Pool, Report

MIB = 1 << 20


class Machine:
    """A pool with its own event loop."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.pool = Pool(size=2)
        self.runner.run(self.pool.start())

    def __call__(self, code: str, host: Echo | None = None, context: str = "{}", **limits: int) -> Report:
        job = Job(Bundle({"main.js": code}, context), Limits(**limits))
        return self.runner.run(self.pool.run(job, host or Echo()))

    def close(self) -> None:
        self.runner.run(self.pool.stop())
        self.runner.close()


@pytest.fixture
def js() -> Iterator[Machine]:
    machine = Machine()
    yield machine
    machine.close()


def test_all_walls_stand_around_it(js: Machine) -> None:
    report = js("export default () => 6 * 7")
    assert report.result == "42"
    assert all(stands for wall, stands in report.walls.items() if wall != "uid")


@pytest.mark.parametrize(
    ("code", "limits", "outcome"),
    [
        ("for(;;);", {"cpu_ms": 100}, Outcome.CPU_LIMIT),
        ("try { for(;;); } finally { for(;;); }", {"cpu_ms": 100}, Outcome.CPU_LIMIT),
        ("Array.prototype.reverse.call({length: 2 ** 53 - 1})", {"cpu_ms": 100}, Outcome.CPU_LIMIT),
        ("new Array(4294967295).join('')", {"cpu_ms": 100}, Outcome.CPU_LIMIT),
        ("await (async function f() { await null; return f() })()", {"cpu_ms": 100}, Outcome.CPU_LIMIT),
        ("throw { get message() { for(;;); } }", {"cpu_ms": 100}, Outcome.CPU_LIMIT),
        ("await new Promise(f => setTimeout(f, 60000))", {"wall_ms": 200}, Outcome.WALL_LIMIT),
        ("const a = []; for (;;) a.push({})", {"memory_bytes": 32 * MIB}, Outcome.MEMORY_LIMIT),
        ("const a = []; for (;;) a.push(new ArrayBuffer(1e6))", {"memory_bytes": 32 * MIB}, Outcome.MEMORY_LIMIT),
        ("let s = 'x'; for (;;) { s += s; s.charCodeAt(9) }", {"memory_bytes": 32 * MIB}, Outcome.MEMORY_LIMIT),
        ("(function f() { f() })()", {}, Outcome.STACK_LIMIT),
        ("return 'x'.repeat(300000)", {}, Outcome.OUTPUT_LIMIT),
        ("throw new Error('no')", {}, Outcome.SCRIPT_ERROR),
        ("let x = ;", {}, Outcome.COMPILE_ERROR),
        ("x".ljust(300_000), {}, Outcome.SOURCE_TOO_LARGE),
    ],
)
def test_limits(js: Machine, code: str, limits: dict[str, int], outcome: Outcome) -> None:
    report = js(code, **limits)
    assert report.outcome is outcome, report
    assert report.result is None
    assert report.error is not None
    assert report.error.message
    assert report.usage.memory_peak_bytes <= limits.get("memory_bytes", 64 * MIB) + 40 * MIB
    assert js("return 1").result == "1", "the next run is as good as any"


def test_error_has_its_line(js: Machine) -> None:
    error = js("const a = 1\nconst b = 2\nthrow new TypeError('here')\n").error
    assert error is not None
    assert (error.name, error.message, error.file, error.line) == ("TypeError", "here", "main.js", 3)


def test_no_text_of_the_host_in_any_error(js: Machine) -> None:
    for code in (
        "import 'nope'",
        "import x from '/etc/passwd'",
        "null.x",
        "await import('data:text/javascript,1')",
        "\0",
        "{",
    ):
        text = str(js(code))
        for word in ("Traceback", 'File "', "/root", "/work", "/usr", ".py", "lodger:"):
            assert word not in text, (code, text)


def test_each_worker_draws_its_own_numbers(js: Machine) -> None:
    code = "return [Math.random(), crypto.randomUUID(), globalThis.seen = (globalThis.seen ?? 0) + 1]"
    answers = [json.loads(js(code).result or "") for _ in range(60)]
    assert len({answer[0] for answer in answers}) == 60
    assert len({answer[1] for answer in answers}) == 60
    assert {answer[2] for answer in answers} == {1}


def test_script_sees_nothing_of_the_process(js: Machine) -> None:
    found = js(
        "return ['process', 'require', 'std', 'os', 'scriptArgs', 'print', 'SharedArrayBuffer'].map(n => typeof globalThis[n])"
    )
    assert json.loads(found.result or "") == ["undefined"] * 7


def test_logs_before_a_limit_are_kept(js: Machine) -> None:
    report = js("console.log('before'); for(;;);", cpu_ms=100)
    assert [line.text for line in report.logs] == ["before"]
    assert report.outcome is Outcome.CPU_LIMIT


def test_log_lines_beyond_the_limit_are_counted(js: Machine) -> None:
    report = js("for (let i = 0; i < 50; i++) console.log(i)", log_lines=10)
    assert report.outcome is Outcome.OK
    assert report.dropped_logs == 40
    assert "40 more lines dropped" in report.logs[-1].text

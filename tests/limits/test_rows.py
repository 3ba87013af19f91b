"""Every row of the table of limits, with what a script needs just above, exactly at and just below the limit: each row its own outcome."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.limits.machine import MIB, Machine

from lodger.sandbox import Outcome, Report
from lodger.sandbox.limits import LIMITS

OK = Outcome.OK


@dataclass(frozen=True)
class Row:
    """One limit: a script that needs exactly ``needs`` of it, and how it ends with less."""

    name: str
    needs: int
    code: str
    outcome: Outcome
    context: str = "{}"
    step: int = 1


def padded(size: int) -> str:
    code = "return 1 //"
    return code + "x" * (size - len(code))


def call(size: int) -> str:
    # The frame of a call: its number, the name's length, the name, the arguments as JSON.
    args = size - 5 - len("kv.get") - len('{"key":""}')
    return f"await kv.get('k'.repeat({args})); return 1"


ROWS = [
    Row("source_bytes", 1000, padded(1000), Outcome.SOURCE_TOO_LARGE),
    Row("input_bytes", 1000, "return 1", Outcome.BAD_REQUEST, json.dumps({"a": "x" * 991})),
    Row("result_bytes", 1000, "return 'x'.repeat(998)", Outcome.OUTPUT_LIMIT),
    Row("json_depth", 10, "let a = 1; for (let i = 0; i < 10; i++) a = [a]; return a", Outcome.BAD_REQUEST),
    Row("host_calls", 5, "for (let i = 0; i < 5; i++) await kv.get('k'); return 1", Outcome.CALL_LIMIT),
    Row("frame_bytes", 5000, call(5000), Outcome.OUTPUT_LIMIT),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_exactly(js: Machine, row: Row) -> None:
    reports = [js(row.code, context=row.context, **{row.name: row.needs + by}) for by in (-row.step, 0, row.step)]
    assert [report.outcome for report in reports] == [row.outcome, OK, OK], reports
    assert reports[0].error is not None
    assert reports[0].error.message
    assert reports[0].result is None


def test_a_result_counts_in_bytes_not_in_letters(js: Machine) -> None:
    found = [js("return 'ä'.repeat(499)", result_bytes=1000 + by).outcome for by in (-1, 0, 1)]
    assert found == [Outcome.OUTPUT_LIMIT, OK, OK]


def test_memory(js: Machine) -> None:
    # The realm itself, the engine's tables and the allocator's rounding lie in the limit too: eight MiB are left for them.
    limit = 40 * MIB
    hold = "const a = []; for (let n = 0; n < {}; n++) a.push(new ArrayBuffer(1 << 20)); return a.length"
    found = {mib: js(hold.format(mib), memory_bytes=limit) for mib in (32, 40, 41)}
    assert found[32].outcome is OK
    assert found[32].result == "32"
    for mib in (40, 41):
        assert found[mib].outcome is Outcome.MEMORY_LIMIT, found[mib]
    assert js(hold.format(32), memory_bytes=limit - 16 * MIB).outcome is Outcome.MEMORY_LIMIT
    assert js(hold.format(41), memory_bytes=limit + 16 * MIB).outcome is OK


@pytest.mark.parametrize("limit", [99, 100, 101])
def test_cpu(js: Machine, limit: int) -> None:
    report = js("for (;;);", cpu_ms=limit)
    assert report.outcome is Outcome.CPU_LIMIT
    assert report.error is not None
    assert f"{limit} ms" in report.error.message
    assert (
        limit - 10 <= report.usage.cpu_ms <= limit + 20 * 100
    )  # a tick of the kernel's clock below, a gross bound above
    assert js("let n = 0; for (let i = 0; i < 1000; i++) n++; return n", cpu_ms=limit).result == "1000"


@pytest.mark.parametrize("limit", [199, 200, 201])
def test_wall(js: Machine, limit: int) -> None:
    report = js("await new Promise((f) => setTimeout(f, 60000))", wall_ms=limit)
    assert report.outcome is Outcome.WALL_LIMIT
    assert report.error is not None
    assert f"{limit} ms" in report.error.message
    assert limit <= report.usage.wall_ms <= limit + 20 * 100
    assert js("await new Promise((f) => setTimeout(f, 5)); return 1", wall_ms=10_000).result == "1"


def texts(report: Report) -> list[str]:
    assert report.outcome is OK
    return [line.text for line in report.logs]


LOG: list[tuple[str, str, int, Callable[[Report], bool]]] = [
    ("log_lines", "for (let i = 0; i < 20; i++) console.log('x')", 20, lambda report: texts(report) == ["x"] * 20),
    ("log_line_bytes", "console.log('x'.repeat(100))", 100, lambda report: texts(report) == ["x" * 100]),
    (
        "log_bytes",
        "console.log('x'.repeat(500)); console.log('y'.repeat(500))",
        1000,
        lambda report: texts(report)[1] == "y" * 500,
    ),
]


@pytest.mark.parametrize(("name", "code", "needs", "whole"), LOG, ids=[row[0] for row in LOG])
def test_logs_are_cut_and_marked(
    js: Machine, name: str, code: str, needs: int, whole: Callable[[Report], bool]
) -> None:
    below, at, above = (js(code, **{name: needs + by}) for by in (-1, 0, 1))
    assert whole(at)
    assert whole(above)
    assert not whole(below)
    assert at.dropped_logs == above.dropped_logs == 0
    assert below.dropped_logs or "…" in texts(below)[-1]


def test_the_stack(js: Machine) -> None:
    report = js("const f = (n) => f(n + 1) + 1; f(0)")
    assert report.outcome is Outcome.STACK_LIMIT
    assert report.error is not None
    assert "nested" in report.error.message
    assert js("const f = (n) => (n === 0 ? 0 : 1 + f(n - 1)); return f(500)").result == "500"


def test_no_row_is_forgotten() -> None:
    here = {row.name for row in ROWS} | {row[0] for row in LOG} | {"memory_bytes", "cpu_ms", "wall_ms"}
    elsewhere = {"wasm_bytes"}  # tests/escape/test_wasm_limits.py
    assert here | elsewhere == {spec.name for spec in LIMITS}

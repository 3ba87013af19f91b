"""Peak memory: a worker stays near its limit, and the engine's process does not grow with its output."""

import gc
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.escape.commands import HELLO, command, data
from tests.escape.probing import Echo
from tests.limits.machine import MIB, Machine

from lodger.sandbox import Outcome
from lodger.sandbox.job import Reply

HOGS = {
    "objects": "const a = []; for (;;) a.push({})",
    "buffers": "const a = []; for (;;) a.push(new ArrayBuffer(1e5))",
    "one buffer": "let n = 1e6; for (;;) { new Uint8Array(n).fill(1); n *= 1.1 }",
    "text": "let s = 'x'; for (;;) { s += s; s.charCodeAt(9) }",
    "a map": "const m = new Map(); for (let i = 0; ; i++) m.set(i, [i])",
    "closures": "let f = () => 0; for (;;) { const g = f; f = () => g }",
    "numbers": "let n = 1n; for (;;) n = n * n + 7n",
    "caught again and again": "const a = []; for (;;) try { for (;;) a.push(new Array(1000).fill(0)) } catch {}",
    "parsed": "const t = '[' + '[],'.repeat(3e5) + '[]]'; const a = []; for (;;) a.push(JSON.parse(t))",
    "jobs": "const f = async (n) => { await null; f(n + 1); f(n + 1) }; f(0); await new Promise(() => {})",
}  # fmt: skip
FILL = (
    "(memory.fill (i32.const 1024) (i32.const 7) (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 1024)))"
)
GROW = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))"
MODULES = {
    "pages": command(GROW + FILL + "unreachable"),
    "pages, again and again": command(GROW + f"(loop $m {FILL} (br $m))"),
    "tables": command(
        "(drop (table.grow $a (ref.null func) (i32.const 99999))) (drop (table.grow $b (ref.null func) (i32.const 99999)))"
        + GROW + FILL + "unreachable",
        extra="(table $a 0 funcref) (table $b 0 funcref)",
    ),
    "a line without end": command("(loop $l (call $out (i32.const 2) (i32.const 30000) (i32.const 30000)) (br $l))"),
    "calls": command(GROW + FILL + "(call $f)", extra="(func $f (local i64 i64 i64 i64) (call $f) (call $f))"),
}  # fmt: skip
#: Allowed outcomes; a number that is too long is a RangeError.
ENDS = {Outcome.MEMORY_LIMIT, Outcome.CPU_LIMIT, Outcome.SCRIPT_ERROR, Outcome.STACK_LIMIT}


@pytest.mark.parametrize(("mib", "hogs"), [(16, list(HOGS)), (64, ["objects", "buffers", "parsed"])])
def test_peak_of_a_worker(js: Machine, mib: int, hogs: list[str]) -> None:
    ended = peaks(js, mib, {name: HOGS[name] for name in hogs})
    assert ended["objects"] is ended["buffers"] is Outcome.MEMORY_LIMIT


@pytest.mark.parametrize("mib", [32])
def test_peak_of_a_module(mib: int) -> None:
    wasm = Machine("wasm")
    try:
        ended = peaks(wasm, mib, MODULES)
    finally:
        wasm.close()
    assert ended["pages"] is ended["tables"] is Outcome.MEMORY_LIMIT
    assert ended["calls"] is Outcome.STACK_LIMIT


def peaks(machine: Machine, mib: int, hogs: Mapping[str, str | bytes]) -> dict[str, Outcome]:
    """Run programs that use up memory; return their outcomes, and assert that none went beyond its limit."""
    over, ended = {}, {}
    for name, code in hogs.items():
        report = machine(code, memory_bytes=mib * MIB, cpu_ms=250)
        ended[name] = report.outcome
        if report.usage.memory_peak_bytes > mib * MIB + machine.above_bytes:
            over[name] = report.usage.memory_peak_bytes / MIB
    assert not over
    assert set(ended.values()) <= ENDS, ended
    return ended


def resident() -> int:
    """Return this process's resident memory after garbage collection."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


LARGE = {
    "a result": "return 'x'.repeat(20e6)",
    "a result of many": "return new Array(4e6).fill(1)",
    "an error": "throw new Error('x'.repeat(20e6))",
    "lines": "for (;;) console.log('x'.repeat(20e6))",
    "calls": "for (;;) await kv.get('x'.repeat(20e6))",
}
LARGE_MODULES = {
    "a result": command(
        "(drop (memory.grow (i32.const 400))) (call $out (i32.const 1) (i32.const 1024) (i32.const 20000000))"
    ),
    "lines": command("(loop $l (call $out (i32.const 2) (i32.const 1024) (i32.const 60000)) (br $l))"),
    "lines of one byte": command(
        "(loop $l (call $out (i32.const 2) (i32.const 1024) (i32.const 60000)) (br $l))",
        extra=data(1024, "x\\n" * 30000),
    ),
}


class Generous(Echo):
    """Host that answers every call with the maximum size of a frame."""

    async def call(self, name: str, arguments: str) -> Reply:
        return Reply(True, f'"{"x" * (MIB - 16)}"')


def highest() -> int:
    """Return this process's peak memory since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def test_answers_that_nobody_takes_are_few(js: Machine) -> None:
    """A worker makes a hundred calls and never reads the replies, which the parent buffers."""
    ask = "for (let i = 0; i < 100; i++) kv.get('k').catch(() => {}); for (;;);"
    js(ask, Generous(), cpu_ms=100)
    grown = []
    for _ in range(2):  # other work of this process, such as garbage collection, does not occur each time
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        before = highest()
        report = js(ask, Generous(), cpu_ms=200)
        grown.append(highest() - before)
        assert report.outcome is Outcome.CPU_LIMIT
        assert report.usage.host_calls >= 4, "they were asked"
    assert min(grown) < 8 * MIB


def test_growth_of_the_parent(any_runtime: Machine) -> None:
    large: Mapping[str, str | bytes] = LARGE_MODULES if any_runtime.name == "wasm" else LARGE
    any_runtime(HELLO if any_runtime.name == "wasm" else "return 'x'.repeat(200000)")
    for code in large.values():  # compiled in advance, so that its growth is not measured
        any_runtime(code, cpu_ms=50)
    before = resident()
    for code in large.values():
        report = any_runtime(code, memory_bytes=256 * MIB, cpu_ms=150, wall_ms=20_000)
        assert report.outcome is not Outcome.OK
        assert resident() - before < 8 * MIB

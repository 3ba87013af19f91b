"""What a run may take from the machine: a worker stays near its limit, and the engine's own process does not grow with what comes back."""

import os
from pathlib import Path

import pytest
from tests.limits.machine import MIB, Machine

from lodger.sandbox import Outcome

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
    "jobs": "const f = (n) => { Promise.resolve().then(() => f(n + 1)); Promise.resolve().then(() => f(n + 1)) }; f(0); await new Promise(() => {})",
}  # fmt: skip
ENDS = {
    Outcome.MEMORY_LIMIT,
    Outcome.CPU_LIMIT,
    Outcome.SCRIPT_ERROR,
}  # a number too long is a RangeError of the language


@pytest.mark.parametrize(("mib", "hogs"), [(16, list(HOGS)), (64, ["objects", "buffers", "parsed"])])
def test_peak_of_a_worker(js: Machine, mib: int, hogs: list[str]) -> None:
    over, ended = {}, {}
    for name in hogs:
        code = HOGS[name]
        report = js(code, memory_bytes=mib * MIB, cpu_ms=1000)
        ended[name] = report.outcome
        if report.usage.memory_peak_bytes > mib * MIB + js.above_bytes:
            over[name] = report.usage.memory_peak_bytes / MIB
    assert not over
    assert set(ended.values()) <= ENDS
    assert ended["objects"] is ended["buffers"] is Outcome.MEMORY_LIMIT


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


LARGE = {
    "a result": "return 'x'.repeat(20e6)",
    "a result of many": "return new Array(4e6).fill(1)",
    "an error": "throw new Error('x'.repeat(20e6))",
    "lines": "for (;;) console.log('x'.repeat(20e6))",
    "calls": "for (;;) await kv.get('x'.repeat(20e6))",
}


def test_growth_of_the_parent(js: Machine) -> None:
    js("return 'x'.repeat(200000)")
    before = resident()
    for code in LARGE.values():
        assert js(code, memory_bytes=256 * MIB, cpu_ms=1000, wall_ms=20_000).outcome is not Outcome.OK
        assert resident() - before < 8 * MIB

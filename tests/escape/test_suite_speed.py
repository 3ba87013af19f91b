"""Findings of the suite do not depend on the host's speed; further checks of its evidence."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

import lodger.sandbox
from lodger.escape import invariants
from lodger.escape.arena import COMPILE_LIMITS
from lodger.escape.case import Case
from lodger.escape.cases import all_cases
from lodger.escape.evidence import Escaped, Trial
from lodger.escape.report import as_json, as_junit, passed
from lodger.escape.runner import Suite
from lodger.sandbox import Limits, Outcome, Report
from lodger.sandbox.job import Usage

MIB = 1 << 20


def test_a_compilation_is_judged_by_its_memory_and_by_the_share_of_its_cpu_limit() -> None:
    """Without the limits a fast host reaches the larger memory limit first; memory does not depend on the speed."""
    (bomb,) = (case for case in all_cases() if case.id == "I130-calls")
    cpu_ms, memory = COMPILE_LIMITS.cpu_ms, COMPILE_LIMITS.memory_bytes

    def stopped(**usage: float) -> str:
        return bomb.seen(Trial((Report(Outcome.MEMORY_LIMIT, usage=Usage(**usage)),), Limits()))

    assert stopped(cpu_ms=2 * cpu_ms, memory_peak_bytes=memory)
    with pytest.raises(Escaped, match="CPU time in the compiler"):
        stopped(cpu_ms=3 * cpu_ms)
    with pytest.raises(Escaped, match="bytes of memory"):
        stopped(cpu_ms=cpu_ms, memory_peak_bytes=4 * memory)
    with pytest.raises(Escaped, match="to its end"):
        bomb.seen(Trial((Report(Outcome.OK, usage=Usage()),), Limits()))


def test_a_host_too_slow_for_a_case_is_called_slow_and_no_escape() -> None:
    """A script that ends by its time limit only on a slow host is not an escape."""
    never = Case(
        "B23-never", "store_limit", "memory that is never reached", "for (;;);", (Outcome.MEMORY_LIMIT,), story="x",
        limits={"cpu_ms": 20}, runtimes=("quickjs-native",),
    )  # fmt: skip
    suite = Suite((never, replace(never, id="B23-late", script=LATE, limits={"cpu_ms": 60, "memory_bytes": 16 * MIB})))
    slow, late = asyncio.run(suite.run())
    assert (slow.status, slow.outcome) == ("slow", "cpu_limit")
    assert late.status == "contained", "with four times the CPU time it met its own limit"
    assert passed([slow, late])
    body = as_json([slow], {})
    assert body["ok"]
    assert body["summary"]["slow"] == 1
    assert '<skipped message="ended as cpu_limit' in as_junit([slow])


#: Uses memory only after the initial CPU time of the case.
LATE = """
const end = Date.now() + 90; while (Date.now() < end);
const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1));
"""


def test_a_path_of_the_host_in_a_result_is_an_escape() -> None:
    place = str(Path(lodger.sandbox.__file__).resolve().parent / "child" / "boot.py")
    assert any(path in place for path in invariants.host_paths())
    reported = Case(
        "A8-told", "no_paths", "a path in a result", f"return [{place!r}];", story="x", runtimes=("quickjs-native",)
    )
    plain = replace(reported, id="A8-plain", script="return ['/etc/passwd', '/usr/lib', 'boot.py'];")
    found = asyncio.run(Suite((reported, plain)).run())
    assert [one.status for one in found] == ["escaped", "contained"]
    assert "the result contains a path of the host" in found[0].evidence

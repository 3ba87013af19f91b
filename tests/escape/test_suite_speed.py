"""Findings of the suite do not depend on the host's speed; further checks of its evidence."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

import lodger.sandbox
from lodger.escape import evidence, invariants
from lodger.escape.arena import COMPILE_LIMITS
from lodger.escape.case import Case
from lodger.escape.cases import all_cases
from lodger.escape.evidence import Escaped, Slow, Trial
from lodger.escape.judge import Finding
from lodger.escape.report import as_json, as_junit, passed
from lodger.escape.runner import Suite
from lodger.sandbox import Limits, Outcome, Report
from lodger.sandbox.job import LogLine, Usage

MIB = 1 << 20


def trial(**usage: float) -> Trial:
    return Trial(
        (Report(Outcome.OK, result="1", usage=Usage(**usage)),), Limits(cpu_ms=100, wall_ms=1000, memory_bytes=32 * MIB)
    )


@pytest.mark.parametrize(
    ("figure", "bound", "beyond"),
    [("cpu_ms", 100, evidence.CPU_SLACK_MS), ("wall_ms", 1000, evidence.WALL_SLACK_MS)],
)
def test_a_time_carries_a_margin_of_four(figure: str, bound: float, beyond: float) -> None:
    assert evidence.within_limits(trial(**{figure: bound + beyond}))
    for just_slow in (bound + beyond + 1, bound + 4 * beyond):
        with pytest.raises(Slow):
            evidence.within_limits(trial(**{figure: just_slow}))
    with pytest.raises(Escaped):
        evidence.within_limits(trial(**{figure: bound + 4 * beyond + 1}))


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


def test_page_tables_are_memory() -> None:
    held = trial(memory_peak_bytes=MIB)
    assert evidence.within_limits(held)
    assert evidence.within_limits(replace(held, page_table_bytes=20 * MIB))
    with pytest.raises(Escaped, match="page tables"):
        evidence.within_limits(replace(held, page_table_bytes=525 * MIB))


def test_the_page_tables_of_a_worker_are_seen() -> None:
    seen: list[Trial] = []

    def look(found: Trial) -> str:
        seen.append(found)
        return "looked"

    waits = "await new Promise((go) => setTimeout(go, 50)); return 1;"
    suite = Suite((Case("B23-tables", "store_limit", "nothing", waits, seen=look, story="A worker that waits."),))
    assert [found.status for found in asyncio.run(suite.run())] == ["contained", "contained"]
    assert all(0 < found.page_table_bytes < 4 * MIB for found in seen)


@pytest.mark.parametrize("outcome", [Outcome.CPU_LIMIT, Outcome.WALL_LIMIT])
def test_a_log_that_met_no_limit_need_not_say_that_it_was_cut(outcome: Outcome) -> None:
    limits = Limits(log_lines=50, log_bytes=4096)
    line = LogLine("info", "x")
    few, many = (line,) * 49, (line,) * 50
    with pytest.raises(Slow):
        evidence.marked(Trial((Report(outcome, logs=few),), limits))
    with pytest.raises(Escaped):
        evidence.marked(Trial((Report(outcome, logs=many),), limits))
    with pytest.raises(Escaped):
        evidence.marked(Trial((Report(Outcome.OK, result="1", logs=few),), limits))
    assert evidence.marked(Trial((Report(outcome, logs=many, dropped_logs=3),), limits))


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


def test_variants_of_one_attack_count_once() -> None:
    one = Case("A3-a", "host_names", "one way", "return 1;", story="A walk.")
    other = replace(one, id="A3-b", mechanism="another way")
    far = replace(one, id="A4-a")
    findings = [
        Finding(case, runtime, "contained", "ok", "") for case in (one, other, far) for runtime in ("quickjs", "wasm")
    ]
    summary = as_json(findings, {})["summary"]
    assert (summary["contained"], summary["triples"], summary["attacks"]) == (6, 6, 2)

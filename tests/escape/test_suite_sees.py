"""One case per layer, on every runtime with LODGER_ESCAPE=whole: contained with its own wall only, escaped without any.

What the suite finds does not depend on the speed of the host.
"""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.escape.matrix.runner import Matrix
from tests.escape.matrix.weakening import BY_CASE, WEAKENINGS
from tests.everyday_share import NATIVE

import lodger.sandbox
from lodger.escape import invariants
from lodger.escape.arena import COMPILE_LIMITS, RUNTIMES
from lodger.escape.case import Case
from lodger.escape.cases import all_cases
from lodger.escape.evidence import Escaped, Trial
from lodger.escape.judge import Finding
from lodger.escape.layers import LAYERS
from lodger.escape.report import as_json, as_junit, passed
from lodger.escape.runner import Suite
from lodger.sandbox import Limits, Outcome, Report
from lodger.sandbox.job import Usage

CASES = all_cases()
#: Layers without a case: they stop native code, which only the tests can run.
ELSEWHERE = {
    "landlock": "tests/escape/test_walls.py",
    "undumpable": "tests/escape/test_walls.py",
    "death_signal": "tests/escape/test_pool_life.py",
    "cgroup": "no host of ours delegates one",
}


def sample() -> dict[tuple[str, str], Case]:
    """The first attack on each layer; on one runtime by default, in turns and not on the optional one if there is another, and on every
    runtime with LODGER_ESCAPE=whole."""
    found: dict[tuple[str, str], Case] = {}
    for case in CASES:
        for runtime in case.runtimes:
            found.setdefault((runtime, case.at(runtime).wall), replace(case, runtimes=(runtime,)))
    if os.environ.get("LODGER_ESCAPE") == "whole":
        return found
    runtimes_of: dict[str, list[str]] = {}
    for runtime, layer in sorted(found):
        runtimes_of.setdefault(layer, []).append(runtime)
    chosen = {}
    for turn, (layer, runtimes) in enumerate(sorted(runtimes_of.items())):
        everyday = [each for each in runtimes if each != NATIVE] or runtimes
        key = everyday[turn % len(everyday)], layer
        chosen[key] = found[key]
    return chosen


SAMPLE = sample()


@pytest.fixture(scope="module")
def findings(request: pytest.FixtureRequest) -> dict[tuple[str, str], Finding]:
    wanted = {
        (item.callspec.params["runtime"], item.callspec.params["layer"])
        for item in request.session.items
        if getattr(item, "originalname", "") == "test_layer_alone_and_missed"
    }
    suite = Matrix(tuple(SAMPLE[key] for key in sorted(wanted)))
    return {(found.runtime, found.case.wall): found for found in asyncio.run(suite.run())}


@pytest.mark.timeout(900)  # one run of all cases, on a busy host
@pytest.mark.parametrize(("runtime", "layer"), sorted(SAMPLE))
def test_layer_alone_and_missed(runtime: str, layer: str, findings: dict[tuple[str, str], Finding]) -> None:
    found = findings[runtime, layer]
    if found.status == "skipped":
        pytest.skip(found.evidence)
    assert found.status == "contained", found.evidence
    assert (found.only_its_wall, found.no_wall) == ("contained", "escaped"), found.notes


def test_every_layer_can_be_taken_away() -> None:
    assert set(WEAKENINGS) == set(LAYERS)
    for begin in BY_CASE:
        assert any(case.id.startswith(begin) for case in CASES), begin


def test_every_layer_has_an_attack() -> None:
    assert set(LAYERS) - {layer for _, layer in SAMPLE} == set(ELSEWHERE)
    assert {runtime for runtime, _ in SAMPLE} == set(RUNTIMES)


def test_a_harmless_case_is_not_called_an_escape_and_a_wrong_verdict_is_seen() -> None:
    fine = Case("A3-harmless", "host_names", "nothing at all", "return 1;", runtimes=("quickjs",))
    wrong = Case("A3-wrong", "host_names", "an error nobody expects", "throw new Error('x');", runtimes=("quickjs",))
    found = asyncio.run(Suite((fine, wrong)).run())
    assert [one.status for one in found] == ["contained", "failed"]
    assert "script_error" in found[1].evidence


def test_a_case_that_cannot_escape_is_seen() -> None:
    idle = Case("A3-idle", "host_names", "nothing at all", "return 1;", (Outcome.OK,), runtimes=("quickjs",))
    (found,) = asyncio.run(Matrix((idle,)).run())
    assert (found.status, found.only_its_wall, found.no_wall) == ("contained", "contained", "contained")


def test_a_case_that_a_busy_host_starved_is_given_more_time_and_one_that_waits_is_seen() -> None:
    """A case that reaches its wall time with CPU time left is repeated with more time."""
    code = "await new Promise((go) => setTimeout(go, 1500)); for (;;);"
    tight = {"cpu_ms": 60, "wall_ms": 500}
    starved = Case(
        "A3-starved", "host_names", "what comes late", code, (Outcome.CPU_LIMIT,), runtimes=("quickjs",), limits=tight
    )
    waits = Case(
        "A3-waits", "host_names", "what never comes", "await new Promise(() => setTimeout(() => {}, 60000));",
        (Outcome.CPU_LIMIT,), runtimes=("quickjs",), limits=tight,
    )  # fmt: skip
    found = asyncio.run(Suite((starved, waits)).run())
    assert [one.status for one in found] == ["contained", "failed"]
    assert "wall_limit" in found[1].evidence


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

"""One case per layer, on every runtime with LODGER_ESCAPE=whole: contained with its own wall only, escaped without any."""

import asyncio
import os
from dataclasses import replace

import pytest
from tests.escape.matrix.runner import Matrix
from tests.escape.matrix.weakening import BY_CASE, WEAKENINGS

from lodger.escape.arena import RUNTIMES
from lodger.escape.case import Case
from lodger.escape.cases import all_cases
from lodger.escape.judge import Finding
from lodger.escape.layers import LAYERS
from lodger.escape.runner import Suite
from lodger.sandbox.outcome import Outcome

CASES = all_cases()
#: Layers without a case: they stop native code, which only the tests can run.
ELSEWHERE = {
    "landlock": "tests/escape/test_walls.py",
    "undumpable": "tests/escape/test_walls.py",
    "death_signal": "tests/escape/test_pool_life.py",
    "cgroup": "no host of ours delegates one",
}


def sample() -> dict[tuple[str, str], Case]:
    """The first attack on each layer; on one runtime by default, in turns, and on every runtime with LODGER_ESCAPE=whole."""
    found: dict[tuple[str, str], Case] = {}
    for case in CASES:
        for runtime in case.runtimes:
            found.setdefault((runtime, case.at(runtime).wall), replace(case, runtimes=(runtime,)))
    if os.environ.get("LODGER_ESCAPE") == "whole":
        return found
    runtimes_of: dict[str, list[str]] = {}
    for runtime, layer in sorted(found):
        runtimes_of.setdefault(layer, []).append(runtime)
    turns = enumerate(sorted(runtimes_of.items()))
    return {(key := (runtimes[turn % len(runtimes)], layer)): found[key] for turn, (layer, runtimes) in turns}


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

"""The suite can see: behind its own wall alone an attack is contained, behind none it escapes. One or two attacks for every layer."""

import asyncio
from pathlib import Path

import pytest

from lodger.sandbox.escape.case import Case
from lodger.sandbox.escape.cases import all_cases
from lodger.sandbox.escape.layers import LAYERS
from lodger.sandbox.escape.runner import Finding, Suite

CASES = {case.id: case for case in all_cases()}
#: One attack for each layer that can be taken away; the whole matrix is ``lodger escape --matrix``.
SAMPLE = {
    "soft_stop": "B15-loop",
    "cpu_timer": "B16-reverse",
    "cpu_watch": "B16-join-by-parent",
    "wall_clock": "B33-timer",
    "store_limit": "B23-array-buffer",
    "fresh_process": "D65-prototype",
    "worker_output": "B24-string",
    "parent_output": "B24-string-by-parent",
    "worker_log": "B27-lines-in-worker",
    "parent_log": "B27-lines",
    "host_calls": "B28-sequence",
    "frame_limit": "C41-large",
    "json_depth": "C41-deep-array",
    "source_bytes": "B20-too-large",
    "strict_json": "C42-idor-integer",
    "call_table": "C48-class-0",
    "safe_errors": "C50-attribute",
    "no_paths": "C50-message-null",
    "primordials": "A5-poison-json-stringify",
    "written_once": "C39-getter",
    "host_names": "A3-object-constructor",
    "removed_globals": "A13-no-performance",
    "coarse_clock": "A13-date-granularity",
    "reseed": "A14-random",
    "loader": "A4-canary-dynamic-caught",
    "seccomp": "E73-seccomp",
    "no_new_privs": "E75-no-new-privs",
    "rlimits": "B30-limit-of-processes",
    "oom": "E95-oom-score",
    "uid": "E77-uid",
    "namespaces": "E87-net-namespace",
    "root": "E74-root",
}


@pytest.fixture(scope="module")
def findings(request: pytest.FixtureRequest) -> dict[str, Finding]:
    wanted = {
        item.callspec.params["layer"]
        for item in request.session.items
        if item.path == Path(__file__) and hasattr(item, "callspec")
    }
    cases = tuple(CASES[SAMPLE[layer]] for layer in wanted)
    return {found.case.wall: found for found in asyncio.run(Suite(cases, matrix=True).run())}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("layer", SAMPLE)
def test_layer_alone_and_missed(layer: str, findings: dict[str, Finding]) -> None:
    found = findings[layer]
    if found.status == "skipped":
        pytest.skip(found.evidence)
    assert found.status == "contained", found.evidence
    assert (found.only_its_wall, found.no_wall) == ("contained", "escaped"), found.notes


def test_every_layer_is_sampled_or_said_to_stay() -> None:
    used = {case.wall for case in CASES.values()}
    stays = {name for name in used if LAYERS[name].weakening is None}
    assert used - stays - set(SAMPLE) <= {"cgroup"}, "a layer that can be taken away has no sample"


def test_a_harmless_case_is_not_called_an_escape_and_a_wrong_verdict_is_seen() -> None:
    fine = Case("A3-harmless", "host_names", "nothing at all", "return 1;")
    wrong = Case("A3-wrong", "host_names", "an error nobody expects", "throw new Error('x');")
    found = asyncio.run(Suite((fine, wrong)).run())
    assert [one.status for one in found] == ["contained", "failed"]
    assert "script_error" in found[1].evidence

"""A sample of the cases of ``lodger escape`` for every class, wall and runtime, in one run of the suite.

``LODGER_ESCAPE=whole`` runs all; ``python -m tests.escape.matrix`` runs all with and without walls.
"""

import asyncio
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lodger.escape.case import Case
from lodger.escape.cases import all_cases
from lodger.escape.judge import Finding
from lodger.escape.runner import Suite

#: Sampling interval among the cases of one class, wall and runtime; larger for classes that run until a time limit.
EVERY, EVERY_SLOW = 25, 80
SLOW = {1, 15, 16, 17, 18, 20, 23, 25}
CASES = {case.id: case for case in all_cases()}
WHOLE = os.environ.get("LODGER_ESCAPE") == "whole"


def chosen() -> dict[str, list[str]]:
    """Return case ids by runtime and class."""
    seen: Counter[tuple[str, int, str]] = Counter()
    kept: dict[str, list[str]] = {}
    for case in CASES.values():
        for runtime in case.runtimes:
            place = seen[runtime, case.number, case.wall]
            seen[runtime, case.number, case.wall] += 1
            if WHOLE or place % (EVERY_SLOW if case.number in SLOW else EVERY) == 0:
                kept.setdefault(f"{runtime}-{case.letter}{case.number}", []).append(case.id)
    return kept


CHOSEN = chosen()


def only(case: Case, runtimes: set[str]) -> Case:
    """Return the case with only some of its runtimes."""
    return replace(case, runtimes=tuple(name for name in case.runtimes if name in runtimes))


@pytest.fixture(scope="module")
def findings(request: pytest.FixtureRequest) -> dict[tuple[str, str], Finding]:
    """Return the findings of one run over the selected classes."""
    wanted: dict[str, set[str]] = {}
    for item in request.session.items:
        if item.path == Path(__file__) and hasattr(item, "callspec"):
            group = item.callspec.params["group"]
            for case in CHOSEN[group]:
                wanted.setdefault(case, set()).add(group.rpartition("-")[0])
    suite = Suite(tuple(only(CASES[case], runtimes) for case, runtimes in wanted.items()))
    return {(found.runtime, found.case.id): found for found in asyncio.run(suite.run())}


@pytest.mark.timeout(900 if WHOLE else 240)
@pytest.mark.parametrize("group", CHOSEN)
def test_attacks_of_class(group: str, findings: dict[tuple[str, str], Finding]) -> None:
    found = [findings[group.rpartition("-")[0], case] for case in CHOSEN[group]]
    broken = {
        one.case.id: f"{one.case.mechanism}: ended as {one.outcome}; {one.evidence}"
        for one in found
        if one.status in ("escaped", "failed")
    }
    assert not broken
    if all(one.status == "skipped" for one in found):
        pytest.skip(found[0].evidence)

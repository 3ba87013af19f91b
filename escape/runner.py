"""The runner: runs cases in real pools, one after another; cases with equal settings share a pool."""

import os
import platform
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from lodger.escape import invariants
from lodger.escape.arena import RUNTIMES, Arena, arena, installed_runtimes, settings_for
from lodger.escape.case import Case
from lodger.escape.judge import Finding, Judge
from lodger.escape.neighbours import Neighbour


@dataclass(slots=True)
class Suite:
    """One run of some cases on this host.

    Attributes:
        runtimes: runtimes to use, by default the installed ones; each case runs on those of its own.
        progress: called with each finding.
    """

    cases: tuple[Case, ...]
    runtimes: tuple[str, ...] = field(default_factory=installed_runtimes)
    progress: Callable[[Finding], None] = lambda _finding: None
    findings: list[Finding] = field(default_factory=list)
    walls: dict[str, bool] = field(default_factory=dict)

    async def run(self) -> list[Finding]:
        """Run all cases and return the findings. Raises ZygoteFailed, WallUnavailable."""
        canaries = invariants.Canaries()
        try:
            for runtime in RUNTIMES:
                chosen = [case.at(runtime) for case in self.cases if runtime in case.runtimes]
                if chosen and runtime in self.runtimes:
                    self.findings += await self.on(runtime, chosen, canaries)
        finally:
            canaries.close()
        return self.findings

    async def on(self, runtime: str, cases: list[Case], canaries: invariants.Canaries) -> list[Finding]:
        """Run cases on one runtime with all walls and return the findings."""
        neighbour, findings = Neighbour(runtime), dict[int, Finding]()
        base = settings_for(runtime)
        async with started(arena(runtime, base)) as home:
            self.walls.update(home.walls)
            for settings, numbers in _groups(runtime, cases):
                async with nullcontext(home) if settings == base else started(arena(runtime, settings)) as place:
                    judge = Judge(runtime, place, canaries, neighbour, home)
                    await judge.prepare()
                    for number in numbers:
                        found = findings[number] = await judge.judge(cases[number])
                        self.progress(found)
        return [findings[number] for number in range(len(cases))]


def _groups(runtime: str, cases: Sequence[Case]) -> list[tuple[dict[str, str], list[int]]]:
    """Return the runtime settings of each pool, with the indices of its cases."""
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for number, case in enumerate(cases):
        groups.setdefault(tuple(sorted(settings_for(runtime, case).items())), []).append(number)
    return [(dict(key), group) for key, group in groups.items()]


@asynccontextmanager
async def started(place: Arena) -> AsyncIterator[Arena]:
    """Start an arena and stop it at the end of the block."""
    try:
        await place.start()
        yield place
    finally:
        await place.stop()


def summary(findings: Iterable[Finding]) -> dict[str, int]:
    """Return the number of findings by status."""
    counts = {"contained": 0, "escaped": 0, "failed": 0, "slow": 0, "skipped": 0}
    for found in findings:
        counts[found.status] += 1
    return counts


def attacks(findings: Iterable[Finding]) -> int:
    """Return the number of attacks: cases of one class with the same story count as one, on all runtimes."""
    return len({found.case.attack for found in findings})


def matrix_counts(findings: Iterable[Finding]) -> tuple[int, int, int]:
    """Return of the cases in the matrix how many held behind their wall alone, how many escaped without it, and their number."""
    tried = [found for found in findings if found.no_wall is not None and found.only_its_wall is not None]
    return sum(f.only_its_wall == "contained" for f in tried), sum(f.no_wall == "escaped" for f in tried), len(tried)


def host() -> dict[str, Any]:
    """Return facts about this host, for the report."""
    about = os.uname()
    return {
        "system": about.sysname,
        "kernel": about.release,
        "machine": about.machine,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
    }

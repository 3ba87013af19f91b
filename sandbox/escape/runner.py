"""Runs cases in real pools, one after another, and judges each; cases that need the same pool share one.

With the matrix each case runs twice more: behind its own wall alone (it must hold) and behind none (the attack must succeed, or the case
proves nothing).
"""

import logging
import os
import platform
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.escape import invariants
from lodger.sandbox.escape.arena import RUNTIMES, WHOLE, Arena, arena, settings_for
from lodger.sandbox.escape.bench import Bench, Finding
from lodger.sandbox.escape.case import Case
from lodger.sandbox.escape.layers import LAYERS, Weakening
from lodger.sandbox.escape.neighbours import Neighbour
from lodger.sandbox.outcome import Outcome

_journal = logging.getLogger("lodger.sandbox")
_ALONE, _NONE = "only its wall", "no wall"


@dataclass(frozen=True, slots=True)
class _Trial:
    """One trial to be made."""

    place: int  # of the finding that it belongs to
    case: Case
    weakening: Weakening = WHOLE
    which: str = ""


@dataclass(slots=True)
class Suite:
    """One run of some cases on this host.

    Attributes:
        runtimes: where to run them; a case runs on those that it names itself.
        progress: hears each finding as it comes, with the matrix a second time.
    """

    cases: tuple[Case, ...]
    matrix: bool = False
    runtimes: tuple[str, ...] = RUNTIMES
    progress: Callable[[Finding], None] = lambda _finding: None
    findings: list[Finding] = field(default_factory=list)
    walls: dict[str, bool] = field(default_factory=dict)

    async def run(self) -> list[Finding]:
        """Run them all. Raises ZygoteFailed and WallUnavailable when nothing can run here."""
        canaries = invariants.Canaries()
        try:
            for runtime in RUNTIMES:
                chosen = [case.at(runtime) for case in self.cases if runtime in case.runtimes]
                if chosen and runtime in self.runtimes:
                    found = await self._whole(runtime, chosen, canaries)
                    self.findings += await self._matrix(runtime, found, canaries) if self.matrix else found
        finally:
            canaries.close()
        return self.findings

    async def _whole(self, runtime: str, cases: list[Case], canaries: invariants.Canaries) -> list[Finding]:
        """Run each behind all walls."""
        neighbour, findings = Neighbour(runtime), dict[int, Finding]()
        base = settings_for(runtime)
        groups = _groups(runtime, [_Trial(place, case) for place, case in enumerate(cases)])
        async with _standing(runtime, base) as home:
            self.walls.update(home.walls)
            for settings, trials in groups:
                async with _standing(runtime, settings, home if settings == base else None) as place:
                    bench = Bench(runtime, place, canaries, neighbour, home)
                    await bench.prepare()
                    for trial in trials:
                        found = findings[trial.place] = await bench.judge(trial.case)
                        self.progress(found)
        return [findings[place] for place in range(len(cases))]

    async def _matrix(self, runtime: str, findings: list[Finding], canaries: invariants.Canaries) -> list[Finding]:
        """Run each behind its own wall alone, and behind none."""
        plan = []
        for place, found in enumerate(findings):
            if found.status != "skipped":
                own = found.case.weaken or LAYERS[found.case.wall].weakening
                others = WHOLE
                for name in found.case.behind:
                    others |= LAYERS[name].weakening
                plan += [_Trial(place, found.case, others, _ALONE), _Trial(place, found.case, others | own, _NONE)]
        with _quiet():
            for settings, trials in _groups(runtime, plan):
                await self._group(runtime, settings, trials, findings, canaries)
        return findings

    async def _group(
        self,
        runtime: str,
        settings: dict[str, str],
        trials: list[_Trial],
        findings: list[Finding],
        canaries: invariants.Canaries,
    ) -> None:
        left = list(trials)
        while left:
            try:
                async with _standing(runtime, settings) as place:
                    bench = Bench(runtime, place, canaries, None)
                    await bench.prepare()
                    while left:
                        weak = await bench.judge(left[0].case, left[0].weakening)
                        findings[left[0].place] = self._noted(findings[left[0].place], left[0], weak)
                        left.pop(0)
            except (SandboxError, TimeoutError) as problem:
                failed = left.pop(0)
                why = problem.what if isinstance(problem, SandboxError) else "no worker became ready"
                note = f"{failed.which}: not tried, {why}"
                findings[failed.place] = replace(findings[failed.place], notes=(*findings[failed.place].notes, note))

    def _noted(self, found: Finding, trial: _Trial, weak: Finding) -> Finding:
        answer = "escaped" if weak.status == "escaped" else "contained"
        right = "contained" if trial.which == _ALONE else "escaped"
        if weak.status != right:
            found = replace(found, notes=(*found.notes, f"{trial.which}: {weak.evidence}"))
        if trial.which == _ALONE:
            found = replace(found, only_its_wall=answer)
        else:
            found = replace(found, no_wall=answer)
        if found.only_its_wall and found.no_wall:
            self.progress(found)
        return found


def _groups(runtime: str, trials: Iterable[_Trial]) -> list[tuple[dict[str, str], list[_Trial]]]:
    """Put together what needs the same pool."""
    groups: dict[tuple[tuple[str, str], ...], list[_Trial]] = {}
    for trial in trials:
        settings = settings_for(runtime, trial.case, trial.weakening)
        groups.setdefault(tuple(sorted(settings.items())), []).append(trial)
    return [(dict(key), group) for key, group in groups.items()]


@asynccontextmanager
async def _standing(runtime: str, settings: dict[str, str], given: Arena | None = None) -> AsyncIterator[Arena]:
    """Give an arena that is up: the given one, or one that lives as long as the block."""
    if given is not None:
        yield given
        return
    made = arena(runtime, settings)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


class _quiet:  # noqa: N801 - used like contextlib's
    """The matrix takes walls away on purpose: warnings of missing walls say nothing new."""

    def __enter__(self) -> None:
        _journal.addFilter(self._serious)

    def __exit__(self, *_raised: object) -> None:
        _journal.removeFilter(self._serious)

    @staticmethod
    def _serious(record: logging.LogRecord) -> bool:
        return record.levelno > logging.ERROR


def summary(findings: Iterable[Finding]) -> dict[str, int]:
    """Count by status."""
    counts = {"contained": 0, "escaped": 0, "failed": 0, "skipped": 0}
    for found in findings:
        counts[found.status] += 1
    return counts


def sees(findings: Iterable[Finding]) -> tuple[int, int, int]:
    """Of the cases that the matrix tried: how many held behind their wall alone, how many escaped without it, how many there were."""
    tried = [found for found in findings if found.no_wall is not None and found.only_its_wall is not None]
    return sum(f.only_its_wall == "contained" for f in tried), sum(f.no_wall == "escaped" for f in tried), len(tried)


def host() -> dict[str, Any]:
    """Say what this host is, for the report."""
    about = os.uname()
    return {
        "system": about.sysname,
        "kernel": about.release,
        "machine": about.machine,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
    }


#: What an honest verdict for an attack on a limit may be, for case tables.
CPU = (Outcome.CPU_LIMIT,)
MEMORY = (Outcome.MEMORY_LIMIT,)
STACK = (Outcome.STACK_LIMIT,)
ERROR = (Outcome.SCRIPT_ERROR,)

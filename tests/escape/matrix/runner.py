"""The runner of the matrix: runs each case with all walls, with its own wall only (must be contained), and with none (must escape)."""

import logging
from dataclasses import dataclass, replace

from tests.escape.matrix.arena import weak_arena, weak_settings
from tests.escape.matrix.judge import WeakJudge
from tests.escape.matrix.weakening import Weakening, of, of_others

from lodger.escape.case import Case
from lodger.escape.invariants import Canaries
from lodger.escape.judge import Finding
from lodger.escape.runner import Suite, started
from lodger.sandbox.errors import SandboxError

_journal = logging.getLogger("lodger.sandbox")
_ALONE, _NONE = "only its wall", "no wall"


@dataclass(frozen=True, slots=True)
class _Weak:
    """One trial to run.

    Attributes:
        place: index of its finding.
    """

    place: int
    case: Case
    weak: Weakening
    which: str


class Matrix(Suite):
    """One run of the matrix; ``progress`` is called a second time when a finding is complete."""

    async def on(self, runtime: str, cases: list[Case], canaries: Canaries) -> list[Finding]:
        """Run cases on one runtime with all walls, with their own wall only, and with none, and return the findings."""
        findings = await super().on(runtime, cases, canaries)
        groups: dict[object, list[_Weak]] = {}
        for place, found in enumerate(findings):
            if found.status == "skipped":
                continue
            others = of_others(found.case)
            for weak, which in ((others, _ALONE), (others | of(found.case), _NONE)):
                settings = weak_settings(runtime, found.case, weak)
                parent = (weak.host == "naive", weak.late_cpu_ms, weak.late_wall_ms, weak.keeps_frames, weak.compiling)
                group = groups.setdefault((tuple(sorted(settings.items())), parent), [])
                group.append(_Weak(place, found.case, weak, which))
        with _quiet():
            for group in groups.values():
                await self._group(runtime, group, findings, canaries)
        return findings

    async def _group(self, runtime: str, group: list[_Weak], findings: list[Finding], canaries: Canaries) -> None:
        """Run trials that share a pool; a pool that breaks is replaced for the rest."""
        left = list(group)
        while left:
            first = left[0]
            try:
                settings = weak_settings(runtime, first.case, first.weak)
                async with started(weak_arena(runtime, settings, first.weak)) as place:
                    await WeakJudge(runtime, place, canaries, first.weak).prepare()
                    while left:
                        tried = await WeakJudge(runtime, place, canaries, left[0].weak).judge(left[0].case)
                        findings[left[0].place] = self._noted(findings[left[0].place], left[0].which, tried)
                        left.pop(0)
            except (SandboxError, TimeoutError) as problem:
                failed = left.pop(0)
                why = problem.what if isinstance(problem, SandboxError) else "no worker became ready"
                found = findings[failed.place]
                findings[failed.place] = replace(found, notes=(*found.notes, f"{failed.which}: not tried, {why}"))

    def _noted(self, found: Finding, which: str, weak: Finding) -> Finding:
        answer = "escaped" if weak.status == "escaped" else "contained"
        right = "contained" if which == _ALONE else "escaped"
        if weak.status != right:
            found = replace(found, notes=(*found.notes, f"{which}: {weak.evidence}"))
        found = replace(found, only_its_wall=answer) if which == _ALONE else replace(found, no_wall=answer)
        if found.only_its_wall and found.no_wall:
            self.progress(found)
        return found


class _quiet:  # noqa: N801 - used like contextlib's
    """Context manager that suppresses warnings of missing walls, which the matrix removes on purpose."""

    def __enter__(self) -> None:
        _journal.addFilter(self._serious)

    def __exit__(self, *_raised: object) -> None:
        _journal.removeFilter(self._serious)

    @staticmethod
    def _serious(record: logging.LogRecord) -> bool:
        return record.levelno > logging.ERROR

"""Runs cases in the real pool, one after another, and judges each: evidence first, then the invariants, then the verdict.

With the matrix each case runs twice more: behind its own wall alone (it must hold) and behind none (the attack must succeed, or the case
proves nothing).
"""

import asyncio
import logging
import os
import platform
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.escape import invariants, realms
from lodger.sandbox.escape.case import Case
from lodger.sandbox.escape.evidence import Escaped, Trial, Unseen
from lodger.sandbox.escape.layers import LAYERS, Weakening
from lodger.sandbox.escape.switchboard import Switchboard
from lodger.sandbox.job import Bundle, Job, Report
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool

Status = Literal["contained", "escaped", "failed", "skipped"]

#: What a case gets unless it says otherwise: low, so that four hundred attacks take a minute.
LIMITS = {"cpu_ms": 100, "wall_ms": 1500, "memory_bytes": 32 * MIB}
_journal = logging.getLogger("lodger.sandbox")
_SETTLE_S = 15.0
_HOLD_S = 5.0
_ALL, _NOTHING = Weakening(), frozenset[str]()


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one case.

    Attributes:
        status: contained, escaped, failed (held, but not with the verdict that is right), skipped.
        evidence: what was observed, in words.
        only_its_wall: ``contained`` or ``escaped`` behind its own wall alone; None when not tried.
        no_wall: the same behind none; ``escaped`` is right.
        notes: why something was not tried.
    """

    case: Case
    runtime: str
    status: Status
    outcome: str
    evidence: str
    ms: float = 0.0
    only_its_wall: str | None = None
    no_wall: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Suite:
    """One run of some cases on this host.

    Attributes:
        runtimes: further runtimes by name: the pool settings that bring them up. ``quickjs`` is known.
        progress: hears each finding as it comes, with the matrix a second time.
    """

    cases: tuple[Case, ...]
    matrix: bool = False
    runtimes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    progress: Callable[[Finding], None] | None = None
    findings: list[Finding] = field(default_factory=list)
    walls: dict[str, bool] = field(default_factory=dict)
    _base: "Bench | None" = None

    async def run(self) -> list[Finding]:
        """Run them all. Raises ZygoteFailed and WallUnavailable when nothing can run here."""
        canaries = invariants.Canaries()
        neighbours: dict[str, invariants.Neighbour] = {}
        try:
            for runtime in ("quickjs", *self.runtimes):
                chosen = [case for case in self.cases if runtime in case.runtimes]
                if not chosen:
                    continue
                neighbours[runtime] = invariants.Neighbour()
                async with _bench(self._settings(runtime, _ALL, {}), canaries, neighbours[runtime]) as bench:
                    self.walls.update(bench.pool.walls)
                    first = [await self._first(case, runtime, bench) for case in chosen]
                if self.matrix:
                    first = [await self._second(found, canaries) for found in first]
                self.findings += first
        finally:
            canaries.close()
        return self.findings

    async def _first(self, case: Case, runtime: str, bench: "Bench") -> Finding:
        found = await bench.judge(case, runtime, _ALL)
        if self.progress is not None:
            self.progress(found)
        return found

    async def _second(self, found: Finding, canaries: invariants.Canaries) -> Finding:
        found = await self._matrix(found, canaries)
        if self.progress is not None:
            self.progress(found)
        return found

    async def _matrix(self, found: Finding, canaries: invariants.Canaries) -> Finding:
        case, notes = found.case, list(found.notes)
        own = case.weaken if case.weaken is not None else LAYERS[case.wall].weakening
        others = _ALL
        for name in case.behind:
            weakening = LAYERS[name].weakening
            if weakening is None:
                notes.append(f"{name} cannot be taken away")
            else:
                others |= weakening
        if found.status == "skipped":
            return found
        if own is None:
            return replace(found, notes=(*notes, f"{case.wall} cannot be taken away with this runtime"))
        answers: list[str] = []
        for weakening in (others, others | own):
            try:
                async with _bench(self._settings(found.runtime, weakening, case.limits), canaries, None) as bench:
                    weak = await bench.judge(case, found.runtime, weakening)
            except SandboxError as problem:
                return replace(found, notes=(*notes, f"not tried: {problem.what} ({problem.why})"))
            except TimeoutError:
                return replace(found, notes=(*notes, "not tried: no worker became ready"))
            answers.append("contained" if weak.status in ("contained", "failed") else weak.status)
            if weak.status == "failed" or (weakening is not others and weak.status == "contained"):
                notes.append(f"{'only its wall' if weakening is others else 'no wall'}: {weak.evidence}")
        return replace(found, only_its_wall=answers[0], no_wall=answers[1], notes=tuple(notes))

    def _settings(self, runtime: str, weakening: Weakening, limits: Mapping[str, int]) -> dict[str, str]:
        if runtime in self.runtimes:
            settings = dict(self.runtimes[runtime])
        else:
            settings = realms.realm(weakening.realm).settings()
        if weakening.without:
            settings["without"] = " ".join(sorted(weakening.without))
        promised = _promised(limits)
        told = {name: getattr(promised, name) for name in weakening.parent} | dict(weakening.header)
        if runtime == "quickjs" and (weakening.worker or told):
            settings["runtime_path"] = str(Path(__file__).with_name("weakened.py"))
            settings["escape_worker"] = " ".join(sorted(weakening.worker))
            settings["escape_header"] = " ".join(f"{name}={value}" for name, value in told.items() if name != "wall_ms")
        return settings


def _promised(limits: Mapping[str, int]) -> Limits:
    return Limits(**{**LIMITS, **limits})


@asynccontextmanager
async def _bench(
    settings: dict[str, str], canaries: invariants.Canaries, neighbour: invariants.Neighbour | None
) -> AsyncIterator["Bench"]:
    pool = Pool(settings=settings, size=2, profile="trusted")
    if neighbour is None:
        _journal.addFilter(_taken_away)
    try:
        await pool.start()
        bench = Bench(pool, canaries, neighbour)
        await bench.prepare()
        yield bench
    finally:
        await pool.stop()
        _journal.removeFilter(_taken_away)


def _taken_away(record: logging.LogRecord) -> bool:
    """The matrix takes walls away on purpose: warnings of missing walls say nothing new."""
    return record.levelno > logging.WARNING


class Bench:
    """A standing pool, the canaries and the neighbour: where one case after another is tried."""

    def __init__(self, pool: Pool, canaries: invariants.Canaries, neighbour: invariants.Neighbour | None) -> None:
        self.pool = pool
        self._canaries = canaries
        self._neighbour = neighbour

    async def prepare(self) -> None:
        """Let everything that is made once be made, then take stock."""
        for _ in range(3 if self._neighbour is not None else 0):
            await self._next_run()
        await self._settled()
        self._canaries.settled(invariants.uid_of(self.pool.ready[0]))

    async def judge(self, case: Case, runtime: str, weakening: Weakening) -> Finding:
        """Try one case and say what came of it."""
        started = time.perf_counter()
        if not self.pool.walls.get(case.wall, True) and weakening is _ALL:
            return Finding(
                case, runtime, "skipped", "", f"the wall {case.wall} does not stand on this host: see lodger doctor"
            )
        trial = await self._try(case, weakening)
        status, evidence = self._weigh(case, trial)
        broken = [] if self._neighbour is None else await self._after(trial)
        if broken:
            status, evidence = "escaped", "; ".join((*broken, evidence))
        ms = (time.perf_counter() - started) * 1000
        return Finding(case, runtime, status, str(trial.report.outcome), evidence, round(ms, 1))

    @staticmethod
    def _weigh(case: Case, trial: Trial) -> tuple[Status, str]:
        try:
            evidence = case.seen(trial)
        except Escaped as what:
            return "escaped", str(what)
        except Unseen as why:
            return "skipped", str(why)
        for report in trial.reports:
            if report.outcome not in case.expect:
                error = (
                    f" ({report.error.name}: {report.error.message[:160]})"
                    if report.error
                    else f" {(report.result or '')[:160]}"
                )
                return "failed", f"ended as {report.outcome}, right would be {' or '.join(case.expect)}{error}"
        return "contained", evidence

    async def _after(self, trial: Trial) -> list[str]:
        await self._settled()
        broken = invariants.leaks(trial, self._canaries.secret) + invariants.verdict(trial) + self._canaries.touched()
        return [*broken, *filter(None, [await self._next_run()])]

    async def _next_run(self) -> str:
        assert self._neighbour is not None
        job = invariants.neighbour()
        started = time.perf_counter()
        report = await self.pool.run(job, Switchboard(job.limits))
        return self._neighbour.judge(report, (time.perf_counter() - started) * 1000)

    async def _settled(self) -> None:
        async with asyncio.timeout(_SETTLE_S):
            while len(self.pool.ready) < 2:  # noqa: ASYNC110 - the pool announces no readiness, and need not for this
                await asyncio.sleep(0.001)

    async def _try(self, case: Case, weakening: Weakening) -> Trial:
        promised = _promised(case.limits)
        limits = replace(promised, **weakening.parent)
        text = case.context.replace("CANARY_PATH", self._canaries.path).replace("CANARY_PORT", str(self._canaries.port))
        sources = {name: source.replace("CANARY_PATH", self._canaries.path) for name, source in case.sources().items()}
        if weakening.host == "same_realm":
            return await self._shared(sources, text, limits, promised)
        job = Job(Bundle(sources, text), limits, tag=case.id, fuel=case.fuel)
        reports: list[Report] = []
        asked: list[tuple[str, str]] = []
        facts: Mapping[str, str] = {}
        before = invariants.resident_bytes()
        for _ in range(case.tries):
            await self._settled()
            pid = self.pool.ready[0]
            host = Switchboard(limits, naive=weakening.host == "naive")
            running = asyncio.ensure_future(self.pool.run(job, host))
            if case.inspect is not None:
                facts = await self._inspect(case, host, pid, running)
            reports.append(await running)
            asked += host.asked
            if left := invariants.gone((pid,)):
                facts = {**facts, "left": left}
        grown = invariants.resident_bytes() - before
        return Trial(tuple(reports), promised, tuple(asked), facts, max(0, grown))

    async def _shared(self, sources: dict[str, str], context: str, limits: Limits, promised: Limits) -> Trial:
        """Run the attack and then the next tenant's script in one realm."""
        alone = await self.pool.run(invariants.neighbour(), Switchboard(promised))
        modules = {
            "main.js": invariants.SHARED_REALM,
            "victim.js": invariants.NEIGHBOUR,
            "attack.js": sources.pop("main.js"),
            **sources,
        }
        report = await self.pool.run(Job(Bundle(modules, context), limits), Switchboard(promised))
        return Trial(
            (report,),
            promised,
            facts={"victim": report.result or str(report.outcome), "victim alone": alone.result or ""},
        )

    @staticmethod
    async def _inspect(case: Case, host: Switchboard, pid: int, running: "asyncio.Future[Report]") -> Mapping[str, str]:
        assert case.inspect is not None
        held: asyncio.Future[Any] = asyncio.ensure_future(host.held.wait())
        try:
            await asyncio.wait([held, running], timeout=_HOLD_S, return_when=asyncio.FIRST_COMPLETED)
            return case.inspect(pid) if host.held.is_set() else {}
        finally:
            held.cancel()
            host.release.set()


def summary(findings: Iterable[Finding]) -> dict[str, int]:
    """Count by status."""
    counts = {"contained": 0, "escaped": 0, "failed": 0, "skipped": 0}
    for found in findings:
        counts[found.status] += 1
    return counts


def sees(findings: Iterable[Finding]) -> tuple[int, int, int]:
    """Of the cases whose wall was taken away: how many held behind it alone, how many escaped without it, how many were tried."""
    tried = [found for found in findings if found.no_wall is not None]
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

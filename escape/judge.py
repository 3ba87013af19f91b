"""The judge: runs a case in an arena and checks its evidence, the invariants and the outcome."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from lodger.escape import invariants
from lodger.escape.arena import Arena, limits_of
from lodger.escape.case import Case
from lodger.escape.evidence import MARGIN, Escaped, Slow, Trial, Unseen
from lodger.escape.neighbours import Neighbour
from lodger.escape.switchboard import Switchboard
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Bundle, CallHandler, Job, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

Status = Literal["contained", "escaped", "failed", "slow", "skipped"]

_HOLD_S = 5.0
#: Factor on a case's wall time for a second try on a busy host.
_PATIENCE = 10
_MAX_CPU_MS = 20_000
_MAX_WALL_MS = 60_000
#: Time between two readings of a worker's page tables.
_LOOK_S = 0.005
_TENANT = "escape"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one case on one runtime.

    Attributes:
        case: the case for that runtime.
        status: contained, escaped, failed (contained, but with a wrong outcome), slow (the host is too slow for a verdict), skipped.
        evidence: the observation in words.
        only_its_wall: ``contained`` or ``escaped`` behind its own wall alone; None if not tested.
        no_wall: the same without any wall; ``escaped`` is expected.
        notes: why something was not tested, or what was observed instead of an escape.
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


class Judge:
    """Runs cases in one arena, with the canaries and the neighbour, and judges each.

    Args:
        arena: a started arena.
        neighbour: the benign run of another tenant; None for none.
        home: arena of the neighbour, if it is another one.
    """

    #: Whether the arena has all its walls: then a case of a missing wall is skipped, and one that timed out is repeated with more time.
    whole = True

    def __init__(
        self,
        runtime: str,
        arena: Arena,
        canaries: invariants.Canaries,
        neighbour: Neighbour | None,
        home: Arena | None = None,
    ) -> None:
        self._runtime = runtime
        self._arena = arena
        self._canaries = canaries
        self._neighbour = neighbour
        self._home = home or arena

    async def prepare(self) -> None:
        """Warm up the arena and record the reference for the invariants."""
        for _ in range(3 if self._neighbour is not None else 0):
            await self._next_run()
        await self._settled()
        self._canaries.record_reference(self._arena.worker_uids())

    async def judge(self, case: Case) -> Finding:
        """Run one case and return the finding."""
        started = time.perf_counter()
        if self.whole and not self._arena.walls.get(case.wall, True):
            why = f"the wall {case.wall} is missing on this host; run lodger doctor to see how to get it"
            return Finding(case, self._runtime, "skipped", "", why)
        try:
            trial = await self.attack(case)
            status, evidence = self._weigh(case, trial)
            if self.whole and status != "contained" and (status == "slow" or _timed_out(case, trial)):
                trial = await self.attack(_with_more_time(case, trial.limits))
                status, evidence = self._weigh(case, trial)
                if status == "failed" and _ended_by(case, trial, Outcome.CPU_LIMIT):
                    status = "slow"
        except Unseen as why:
            return Finding(case, self._runtime, "skipped", "", str(why))
        except SandboxError:
            raise
        except Exception as problem:  # noqa: BLE001 - a tester's own code: other cases continue
            return Finding(case, self._runtime, "failed", "", f"the case raised an exception: {problem!r}")
        try:
            broken = [] if self._neighbour is None else await self._after(trial)
        except Escaped as what:
            broken = [str(what)]
        except Slow as what:
            broken, status, evidence = [], "slow" if status == "contained" else status, f"{what}; {evidence}"
        if broken:
            status, evidence = "escaped", "; ".join((*broken, evidence))
        ms = (time.perf_counter() - started) * 1000
        return Finding(case, self._runtime, status, str(trial.report.outcome), evidence, round(ms, 1))

    @staticmethod
    def _weigh(case: Case, trial: Trial) -> tuple[Status, str]:
        """Return the status of a finished case by its own evidence, and the evidence in words."""
        try:
            evidence = case.seen(trial)
        except Escaped as what:
            return "escaped", str(what)
        except Slow as what:
            return "slow", str(what)
        except Unseen as why:
            return "skipped", str(why)
        for report in trial.reports:
            if report.outcome not in case.expect:
                error = report.error
                detail = f" ({error.name}: {error.message[:160]})" if error else f" {(report.result or '')[:160]}"
                return "failed", f"ended as {report.outcome}, right would be {' or '.join(case.expect)}{detail}"
        return "contained", evidence

    # -- the invariants --

    async def _after(self, trial: Trial) -> list[str]:
        """Return the invariants that are broken after a case, in words."""
        await self._settled()
        broken = invariants.leaks(trial, self._canaries.secret) + invariants.verdict(trial) + self._canaries.changes()
        broken += [trial.facts[name] for name in ("left", "visited") if name in trial.facts]
        try:
            return [*broken, *filter(None, [await self._next_run()])]
        except Slow:
            if not broken:
                raise
            return broken

    async def _next_run(self) -> str:
        """Run the neighbour once; return what is wrong with its report, "" if nothing."""
        assert self._neighbour is not None
        job = self._neighbour.job()
        if job is None:
            return ""
        started = time.perf_counter()
        report = await self._home.run(job, Switchboard(job.limits))
        return self._neighbour.judge(report, (time.perf_counter() - started) * 1000)

    async def _settled(self) -> None:
        """Wait until no worker of the arenas is left."""
        await self._arena.settled()
        if self._home is not self._arena:
            await self._home.settled()

    # -- the attack --

    async def attack(self, case: Case) -> Trial:
        """Run a case and return its observations."""
        limits = limits_of(case)
        if case.act is not None:
            started = time.perf_counter()
            report = case.act()
            return Trial((report,), limits, took_ms=(time.perf_counter() - started) * 1000)
        return await self.run(case, limits, limits, case.host or Switchboard)

    def _job(self, case: Case, limits: Limits) -> Job:
        """Return the job that runs a case."""
        bundle = Bundle(
            {name: self._canaries.fill_in(source) for name, source in case.sources().items()},
            self._canaries.fill_in(case.context),
            wasm=case.module(),
        )
        return Job(bundle, limits, tag=case.id, tenant=_TENANT)

    async def run(self, case: Case, limits: Limits, held: Limits, make_host: Callable[[Limits], CallHandler]) -> Trial:
        """Run a case in new workers and return the reports.

        Args:
            limits: limits that the case must keep.
            held: limits that the parent enforces.
            make_host: returns the host of the calls.
        """
        job = self._job(case, held)
        reports: list[Report] = []
        asked: list[tuple[str, str]] = []
        facts: Mapping[str, str] = {}
        took_ms = 0.0
        tables = 0
        before = invariants.resident_bytes()
        for _ in range(case.tries):
            await self._arena.settled()
            pid = self._arena.waiting()[0]
            host = make_host(held)
            started = time.perf_counter()
            running = asyncio.ensure_future(self._arena.run(job, host))
            looking = asyncio.ensure_future(self._page_tables(pid, running))
            if case.inspect is not None:
                facts = await self._inspect(case, host, pid, running)
            reports.append(await running)
            tables = max(tables, await looking)
            took_ms = (time.perf_counter() - started) * 1000
            asked += getattr(host, "asked", ())
            facts = {**facts, **getattr(host, "facts", {})}
            if self._canaries.visited():
                facts = {**facts, "visited": "the TCP canary was connected to"}
            used = () if pid in self._arena.waiting() else (pid,)
            if left := invariants.remaining_processes(used):
                facts = {**facts, "left": left}
        grown = invariants.resident_bytes() - before
        return Trial(tuple(reports), limits, tuple(asked), facts, tables, max(0, grown), took_ms)

    async def _page_tables(self, pid: int, running: "asyncio.Future[Report]") -> int:
        """Return the peak size of a worker's page tables, read until it has ended."""
        maximum = 0
        while not running.done():
            maximum = max(maximum, invariants.page_table_bytes(pid))
            await asyncio.wait([running], timeout=_LOOK_S)
        return maximum

    async def _inspect(
        self, case: Case, host: CallHandler, pid: int, running: "asyncio.Future[Report]"
    ) -> Mapping[str, str]:
        """Run the inspection of a case while its worker runs."""
        assert case.inspect is not None
        assert isinstance(host, Switchboard)
        held: asyncio.Future[Any] = asyncio.ensure_future(host.held.wait())
        try:
            await asyncio.wait([held, running], timeout=_HOLD_S, return_when=asyncio.FIRST_COMPLETED)
            return case.inspect(pid) if host.held.is_set() else {}
        finally:
            held.cancel()
            host.release.set()


def _ended_by(case: Case, trial: Trial, *clocks: Outcome) -> bool:
    """Return whether a time limit ended the script unexpectedly."""
    return trial.report.outcome in clocks and trial.report.outcome not in case.expect


def _timed_out(case: Case, trial: Trial) -> bool:
    """Return whether a time limit ended the script early, which on a slow host says nothing about the case."""
    return _ended_by(case, trial, Outcome.CPU_LIMIT) or (
        _ended_by(case, trial, Outcome.WALL_LIMIT) and trial.report.usage.cpu_ms < trial.limits.cpu_ms
    )


def _with_more_time(case: Case, limits: Limits) -> Case:
    """Return the case with :data:`MARGIN` times the CPU time and a longer wall time."""
    cpu_ms = min(_MAX_CPU_MS, MARGIN * limits.cpu_ms)
    return replace(
        case, limits={**case.limits, "cpu_ms": cpu_ms, "wall_ms": min(_MAX_WALL_MS, _PATIENCE * limits.wall_ms)}
    )

"""Tries one case in an arena and judges it: its own evidence first, then the invariants, then the verdict."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from lodger.escape import invariants
from lodger.escape.arena import Arena, promised
from lodger.escape.case import Case
from lodger.escape.evidence import MARGIN, Escaped, Slow, Trial, Unseen
from lodger.escape.neighbours import Neighbour
from lodger.escape.switchboard import Switchboard
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Bundle, Host, Job, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

Status = Literal["contained", "escaped", "failed", "slow", "skipped"]

_HOLD_S = 5.0
#: How many times as long a case is given when the host was too busy to give it the CPU time that it may have.
_PATIENCE = 10
_MAX_CPU_MS = 20_000
_MAX_WALL_MS = 60_000
#: Between two looks at a worker's page tables.
_LOOK_S = 0.005
_TENANT = "escape"


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one case on one runtime.

    Attributes:
        case: as it is on that runtime.
        status: contained, escaped, failed (held, but not with the verdict that is right), slow (the host is too slow for a verdict),
            skipped.
        evidence: what was observed, in words.
        only_its_wall: ``contained`` or ``escaped`` behind its own wall alone; None when not tried.
        no_wall: the same behind none; ``escaped`` is right.
        notes: why something was not tried, or what was seen in place of an escape.
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
    """An arena, the canaries and the neighbour: tries one case after another there, and judges each.

    Args:
        arena: up and running.
        neighbour: the benign run of another tenant; None for none.
        home: where the neighbour runs, when not here.
    """

    #: Whether the arena has all its walls: a case whose wall the host lacks is skipped, one that a busy host starved gets more time.
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
        """Let everything that is made once be made, then take stock."""
        for _ in range(3 if self._neighbour is not None else 0):
            await self._next_run()
        await self._settled()
        self._canaries.settled(self._arena.worker_uids())

    async def judge(self, case: Case) -> Finding:
        """Try one case and say what came of it."""
        started = time.perf_counter()
        if self.whole and not self._arena.walls.get(case.wall, True):
            why = f"the wall {case.wall} does not stand on this host: see lodger doctor"
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
        except Exception as problem:  # noqa: BLE001 - a tester's own code: her other attacks go on
            return Finding(case, self._runtime, "failed", "", f"the case itself is broken: {problem!r}")
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
        await self._settled()
        broken = invariants.leaks(trial, self._canaries.secret) + invariants.verdict(trial) + self._canaries.touched()
        broken += [trial.facts[name] for name in ("left", "visited") if name in trial.facts]
        try:
            return [*broken, *filter(None, [await self._next_run()])]
        except Slow:
            if not broken:
                raise
            return broken

    async def _next_run(self) -> str:
        assert self._neighbour is not None
        job = self._neighbour.job()
        if job is None:
            return ""
        started = time.perf_counter()
        report = await self._home.run(job, Switchboard(job.limits))
        return self._neighbour.judge(report, (time.perf_counter() - started) * 1000)

    async def _settled(self) -> None:
        await self._arena.settled()
        if self._home is not self._arena:
            await self._home.settled()

    # -- the attack --

    async def attack(self, case: Case) -> Trial:
        """Try a case and return what was observed."""
        limits = promised(case)
        if case.act is not None:
            started = time.perf_counter()
            report = case.act()
            return Trial((report,), limits, took_ms=(time.perf_counter() - started) * 1000)
        return await self.run(case, limits, limits, case.host or Switchboard)

    def _job(self, case: Case, limits: Limits) -> Job:
        bundle = Bundle(
            {name: self._canaries.named(source) for name, source in case.sources().items()},
            self._canaries.named(case.context),
            wasm=case.module(),
        )
        return Job(bundle, limits, tag=case.id, fuel=case.fuel, tenant=_TENANT)

    async def run(self, case: Case, limits: Limits, held: Limits, make_host: Callable[[Limits], Host]) -> Trial:
        """Run a case in fresh workers.

        Args:
            limits: what is promised.
            held: what the parent holds the worker to.
            make_host: makes the parent's end of the calls.
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
            pid = next(iter(self._arena.waiting()), 0)
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
            used = self._arena.busy() if not pid else () if pid in self._arena.waiting() else (pid,)
            if left := invariants.gone(used):
                facts = {**facts, "left": left}
        grown = invariants.resident_bytes() - before
        return Trial(tuple(reports), limits, tuple(asked), facts, tables, max(0, grown), took_ms)

    async def _page_tables(self, pid: int, running: "asyncio.Future[Report]") -> int:
        """Return the most page tables of the worker, looked at until it has ended."""
        maximum = 0
        while not running.done():
            for each in (pid,) if pid else self._arena.busy():
                maximum = max(maximum, invariants.page_table_bytes(each))
            await asyncio.wait([running], timeout=_LOOK_S)
        return maximum

    async def _inspect(self, case: Case, host: Host, pid: int, running: "asyncio.Future[Report]") -> Mapping[str, str]:
        assert case.inspect is not None
        assert isinstance(host, Switchboard)
        held: asyncio.Future[Any] = asyncio.ensure_future(host.held.wait())
        try:
            await asyncio.wait([held, running], timeout=_HOLD_S, return_when=asyncio.FIRST_COMPLETED)
            pid = pid or next(iter(self._arena.busy()), 0)
            return case.inspect(pid) if host.held.is_set() and pid else {}
        finally:
            held.cancel()
            host.release.set()


def _ended_by(case: Case, trial: Trial, *clocks: Outcome) -> bool:
    """Whether a clock ended the script that no right verdict names."""
    return trial.report.outcome in clocks and trial.report.outcome not in case.expect


def _timed_out(case: Case, trial: Trial) -> bool:
    """Whether a clock ended the script before what it attacks did: on a slow host that is no verdict on the case."""
    return _ended_by(case, trial, Outcome.CPU_LIMIT) or (
        _ended_by(case, trial, Outcome.WALL_LIMIT) and trial.report.usage.cpu_ms < trial.limits.cpu_ms
    )


def _with_more_time(case: Case, limits: Limits) -> Case:
    """Return the case with :data:`MARGIN` times the CPU time, and more time for a busy host to give it."""
    cpu_ms = min(_MAX_CPU_MS, MARGIN * limits.cpu_ms)
    return replace(
        case, limits={**case.limits, "cpu_ms": cpu_ms, "wall_ms": min(_MAX_WALL_MS, _PATIENCE * limits.wall_ms)}
    )

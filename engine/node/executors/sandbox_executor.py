"""Runs claims in real walls: a claim becomes an Attempt and a Job, the sandbox's report becomes Finished."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from lodger.engine.core import strict_json
from lodger.engine.core.execution import SET_ELSEWHERE, SLOT, Claim
from lodger.engine.core.settings import Settings
from lodger.engine.effects.finished import Finished, Recording, Stopped
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.executors.attempt import UNANSWERED, Attempt
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.node_environment import NodeEnvironment
from lodger.engine.store.stored_modules import MAP
from lodger.sandbox.job import Bundle, Job, JobCancelled, LogLine, Report, Usage
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.pool import WasmPool
from lodger.sandbox.workers.worker_cgroup import WorkerCgroup

#: Processes of the zygotes, their launchers and idle workers, beside the attempts.
_BESIDE = 256


@dataclass(frozen=True, slots=True)
class Ran:
    """The end of a claim that was run.

    Attributes:
        report: of the worker, with the error as the script threw it.
        requested: the effects that the script of a trial asked for, also if it failed.
    """

    finished: Finished
    report: Report
    requested: tuple[dict[str, Any], ...] = ()


class SandboxExecutor:
    """Executes claims with a pool of locked workers. Satisfies :class:`lodger.engine.effects.finished.Executor`.

    Args:
        pool: of the sandbox; started and stopped with the executor.
        side: answers the host calls of the attempts; closed with the executor.
    """

    def __init__(self, pool: Pool | WasmPool, side: HostSide) -> None:
        self.pool = pool
        self.side = side

    @classmethod
    def of(cls, host: NodeEnvironment, *, workers: int | None = None, way_out: WayOut | None = None) -> Self:
        """Make the executor of a node: a warm pool, its own threads for reads, the tables that the host exposes.

        ``workers``: how many are kept warm; None for the pool's own default. ``way_out`` sends requests in place of the
        node's own.
        """
        settings = host.store.settings
        pool = Pool(
            runtime=settings.runtime,
            size=workers,
            cache=settings.cache_dir,
            code_cache=CodeCache.lasting(settings.cache_dir),
            cgroup=worker_cgroup(settings),
            **demanded(settings),
        )
        return cls(pool, HostSide.of(host, way_out=way_out))

    def walls(self) -> dict[str, str]:
        """Return the report of the zygote: maps each wall to "", or to the reason why it is not active; empty before it started."""
        return {} if self.pool.zygote is None else dict(self.pool.zygote.walls)

    async def start(self) -> None:
        """Make the pool ready; safe to call twice."""
        await self.pool.start()

    async def stop(self) -> None:
        """End running attempts, stop the pool and the threads for reads; safe to call twice."""
        await self.pool.stop()
        await self.side.close()

    async def execute(self, claim: Claim) -> Finished:
        """Run one attempt to its end; cancelled, it raises :class:`lodger.engine.effects.finished.Stopped`."""
        return (await self.run(claim)).finished

    async def run(self, claim: Claim) -> Ran:
        """Run one attempt, or a trial, to its end; cancelled as :meth:`execute`."""
        attempt = await self.side.attempt(claim)
        job = as_job(claim, attempt)
        try:
            report = await self.pool.run(job, attempt)
        except JobCancelled as cancelled:
            raise Stopped(finished(claim, attempt, cancelled.report)) from None
        finally:
            attempt.close()
        recording = attempt.recording
        ended = finished(claim, attempt, report, recording)
        if recording is not None:
            runtime = "wasm" if claim.wasm else self.pool.runtime
            await recording.close(claim, job, report, ended, attempt.redactor, runtime)
        return Ran(ended, report, attempt.effects() if claim.trial else ())


def script_bundle(runnable: Mapping[str, str], context: str) -> Bundle:
    """Return the bundle of a script's runnable files (:mod:`lodger.engine.store.stored_modules`): modules, and the source map apart."""
    return Bundle({name: text for name, text in runnable.items() if name != MAP}, context, source_map=runnable.get(MAP))


def as_job(claim: Claim, attempt: Attempt) -> Job:
    """Return the sandbox's job for a claim: a script gets its context, a WebAssembly module its input alone."""
    if claim.wasm is None:
        bundle = script_bundle(claim.modules, attempt.context())
    else:
        bundle = Bundle({}, strict_json.dump_input(claim.params), wasm=claim.wasm)
    return Job(
        bundle,
        limits=claim.limits,
        tag=f"{claim.script_name}#{claim.attempt}",
        now_us=attempt.now_us,
        seed=attempt.seed,
        tenant=claim.tenant_id,
        slot=SLOT.get(),
    )


def whole_usage(attempt: Attempt, report: Report) -> Usage:
    """Return the usage of an attempt: of its worker, with the CPU time that the engine computed for it."""
    if not attempt.computed_us:
        return report.usage
    return replace(report.usage, cpu_ms=report.usage.cpu_ms + attempt.computed_us / 1000)


def finished(claim: Claim, attempt: Attempt, report: Report, recording: Recording | None = None) -> Finished:
    """Make the end of an attempt: only a run that is ok hands on a journal, and a trial only shows it.

    Args:
        recording: closed by the caller with this end.
    """
    attempt.fetch_state.count_abandoned()
    outcome = attempt.verdict(report.outcome, report.error)
    error = report.error
    if outcome is Outcome.ENGINE_FAULT and report.outcome is Outcome.WALL_LIMIT:
        error = UNANSWERED
    elif error is not None and outcome is not report.outcome and attempt.refused is not None:
        elsewhere = outcome is Outcome.ENGINE_FAULT and attempt.refused.code == "set_elsewhere"
        error = replace(error, name=SET_ELSEWHERE if elsewhere else "CallRefused")
    good, redactor = outcome is Outcome.OK, attempt.redactor
    effects = attempt.effects() if good else tuple(attempt.fetch_state.shown)
    if redactor and error is not None:
        error = replace(
            error,
            name=redactor.text(error.name),
            message=redactor.text(error.message),
            stack=redactor.text(error.stack),
            details=redactor.value(error.details),
        )
    return Finished(
        outcome=outcome,
        result=redactor.json(report.result) if good else None,
        error=error,
        logs=merged(attempt, report),
        usage=whole_usage(attempt, report),
        journal=attempt.journal if good and attempt.journal and not claim.trial else None,
        effects=tuple(redactor.value(effects)) if redactor else effects,
        fetched=tuple(attempt.fetch_state.fetched),
        spent=attempt.counters.spent(),
        has_reservation=attempt.has_reservation,
        nearly=tuple(attempt.nearly),
        recording=recording,
    )


def merged(attempt: Attempt, report: Report) -> tuple[LogLine, ...]:
    """Return the script's log lines, redacted, with the warnings about its budgets in between by time."""
    lines, redactor = report.logs, attempt.redactor
    if redactor:
        lines = tuple(replace(line, text=redactor.text(line.text)) for line in lines)
    return tuple(sorted((*lines, *attempt.warnings), key=lambda line: line.us)) if attempt.warnings else lines


def demanded(settings: Settings) -> dict[str, Any]:
    """Return the arguments of a pool that say which walls it needs: the profile and the minimum of the settings."""
    return {"profile": settings.profile, "minimum": settings.walls_minimum}


def worker_cgroup(settings: Settings) -> WorkerCgroup:
    """Return the control group of a node's workers; it is made with the first zygote, where there is a place for it."""
    return WorkerCgroup(
        settings.cgroup,
        memory_bytes=settings.memory_reserved_bytes,
        processes=settings.in_flight_max + 2 * settings.slots + _BESIDE,
    )

"""Runs claims in real walls: a claim becomes an Attempt and a Job, the sandbox's report becomes Finished."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection

from lodger.engine.capabilities.session import Reads
from lodger.engine.clock import Clock
from lodger.engine.data import wire
from lodger.engine.data.datasets import Datasets
from lodger.engine.data.reads import ThreadReads
from lodger.engine.effects import commit
from lodger.engine.node.attempt import Attempt, anyone
from lodger.engine.node.executor import Claim, Finished, Stopped
from lodger.engine.verbs.module_check import shelf_of
from lodger.sandbox.job import Bundle, Job, LogLine, Report
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool

if TYPE_CHECKING:
    from lodger.engine.sync import Engine


#: How long a killed worker's report is waited for, seconds.
REPORT_S = 2.0


class _Killed(Exception):
    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


class SandboxExecutor:
    """Executes claims with a pool of locked workers. Satisfies :class:`lodger.engine.node.executor.Executor`.

    Args:
        pool: of the sandbox; started and stopped with the executor.
        read: answers a question on a read-only connection of the ledger's database.
        datasets: what ``db.NAME`` means.
        clock: tells scripts the time.
        budgets: most of each budget of an attempt, by name.
        mail_allowed: whether a tenant may write to an address.
        on_log: told every log line as it arrives.
    """

    def __init__(
        self,
        pool: Pool,
        read: Reads,
        datasets: Datasets,
        clock: Clock,
        *,
        budgets: dict[str, int] | None = None,
        mail_allowed: Callable[[str, str], bool] = anyone,
        on_log: Callable[[Claim, LogLine], None] | None = None,
    ) -> None:
        self.pool = pool
        self._read = read
        self._datasets = datasets
        self._clock = clock
        self._budgets = budgets
        self._mail_allowed = mail_allowed
        self._on_log = on_log

    @classmethod
    def of(cls, engine: "Engine", *, workers: int | None = None) -> Self:
        """Make the one that an engine's node uses by itself: a warm pool, its own threads for reads, what was exposed.

        ``workers``: how many are kept warm; None for the pool's own default.
        """
        books = engine.books
        reads = ThreadReads(books.database, elapsed_s=books.clock.elapsed_s)
        return cls(
            Pool(
                runtime=books.settings.runtime,
                size=workers,
                cache=books.settings.cache_dir,
                shelf=shelf_of(books.settings),
            ),
            reads,
            engine.datasets,
            books.clock,
        )

    async def start(self) -> None:
        """Make the pool ready; safe to call twice."""
        await self.pool.start()

    async def stop(self) -> None:
        """End what runs, let go of the pool and of the threads for reads; safe to call twice."""
        await self.pool.stop()
        if isinstance(self._read, ThreadReads):
            self._read.close()

    async def execute(self, claim: Claim) -> Finished:
        """Run one attempt to its end; cancelled, it raises :class:`lodger.engine.node.executor.Stopped`."""
        now_us = self._clock.now_us()
        attempt = Attempt(
            claim,
            self._read,
            self._datasets,
            now_us=now_us,
            budgets=self._budgets,
            mail_allowed=self._mail_allowed,
            on_log=self._on_log,
        )
        try:
            report = await self._see_through(as_job(claim, attempt), attempt)
        except _Killed as killed:
            raise Stopped(finished(claim, attempt, killed.report)) from None
        finally:
            attempt.close()
        return finished(claim, attempt, report)

    async def _see_through(self, job: Job, attempt: Attempt) -> Report:
        """Run a job in a task of its own, so that a cancellation does not lose what it has said."""
        stop = asyncio.get_running_loop().create_future()
        running = asyncio.ensure_future(self.pool.run(replace(job, stop=stop), attempt))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop.set_result(None)
            try:
                await asyncio.wait({running}, timeout=REPORT_S)
            finally:
                # It has not begun yet, or this wait was cancelled too.
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            if running.cancelled() or running.exception() is not None:
                raise
            raise _Killed(running.result()) from None


def as_job(claim: Claim, attempt: Attempt) -> Job:
    """Give what the sandbox is asked: a script is told its context, a WebAssembly module reads its input and nothing else."""
    if claim.wasm is None:
        bundle = Bundle(claim.modules, attempt.context())
    else:
        bundle = Bundle({}, wire.dump(claim.params), wasm=claim.wasm)
    return Job(
        bundle,
        limits=claim.limits,
        tag=f"{claim.script_name}#{claim.attempt}",
        now_us=attempt.now_us,
        tenant=claim.tenant_id,
    )


def finished(claim: Claim, attempt: Attempt, report: Report) -> Finished:
    """Make the end of an attempt: only a run that is ok hands on a journal, and a dry run only shows it."""
    outcome = attempt.verdict(report.outcome, report.error)
    error = report.error
    if error is not None and outcome is not report.outcome and attempt.refused is not None:
        error = replace(error, name="CallRefused")
    good = outcome is Outcome.OK
    return Finished(
        outcome=outcome,
        result=report.result if good else None,
        error=error,
        logs=report.logs,
        usage=report.usage,
        journal=attempt.journal if good and attempt.journal and not claim.dry_run else None,
        effects=attempt.effects() if good else (),
    )


def effects_applier(clock: Clock) -> Callable[[Connection, Claim, Finished], None]:
    """Give what the ledger's commit calls to apply an attempt's journal in its own transaction."""

    def apply(connection: Connection, _claim: Claim, ended: Finished) -> None:
        if ended.journal is not None:
            commit.apply(connection, ended.journal, now_us=clock.now_us())

    return apply

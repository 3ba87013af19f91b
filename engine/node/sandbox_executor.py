"""Runs claims in real walls: a claim becomes an Attempt and a Job, the sandbox's report becomes Finished."""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection

from lodger.engine.capabilities.fetching import Fetching
from lodger.engine.capabilities.secrets import none_known
from lodger.engine.capabilities.session import People, Reads
from lodger.engine.clock import Clock
from lodger.engine.data import wire
from lodger.engine.data.datasets import Datasets
from lodger.engine.data.foreign import ForeignDatabase
from lodger.engine.data.guard import Wall, looked
from lodger.engine.data.reads import ThreadReads
from lodger.engine.data.refusal import CallRefused
from lodger.engine.effects import commit
from lodger.engine.egress.request import Answer
from lodger.engine.egress.way_out import WayOut
from lodger.engine.errors import Unavailable
from lodger.engine.ledger import fetches, secrets
from lodger.engine.ledger.secrets import Opened
from lodger.engine.node.attempt import Attempt
from lodger.engine.node.executor import Claim, Finished, Stopped
from lodger.engine.node.host_walls import demanded, enclosure
from lodger.engine.node.people import AskedPeople, StoredPeople
from lodger.engine.node.till import Till
from lodger.engine.vault.vault import Vault
from lodger.engine.verbs.module_check import shelf_of
from lodger.sandbox.job import Bundle, Job, LogLine, Report
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool

if TYPE_CHECKING:
    from lodger.engine.sync import Engine

_log = logging.getLogger("lodger.node")


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
        people: which of some addresses are a tenant's own people's; None: those that the ledger knows.
        on_log: told every log line as it arrives.
        way_out: makes requests; stopped with the executor. None: none leave.
        vault: opens secrets; None: there are none.
        till: gets shares of tenants' days; stopped with the executor. None: nobody counts them.
    """

    def __init__(
        self,
        pool: Pool,
        read: Reads,
        datasets: Datasets,
        clock: Clock,
        *,
        budgets: dict[str, int] | None = None,
        people: People | None = None,
        on_log: Callable[[Claim, LogLine], None] | None = None,
        way_out: WayOut | None = None,
        vault: Vault | None = None,
        till: Till | None = None,
    ) -> None:
        self.pool = pool
        self._read = read
        self._datasets = datasets
        self._clock = clock
        self._budgets = budgets
        self._people = people or StoredPeople(read)
        self._on_log = on_log
        self._way_out = way_out
        self._vault = vault
        self._till = till

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
                enclosure=enclosure(books.settings),
                **demanded(books.settings),
            ),
            reads,
            engine.datasets,
            books.clock,
            people=None if engine.is_own is None else AskedPeople(reads, engine.is_own),
            way_out=WayOut(books.settings),
            vault=engine.vault,
            till=Till(books),
        )

    async def start(self) -> None:
        """Make the pool ready; safe to call twice."""
        await self.pool.start()

    async def stop(self) -> None:
        """End what runs, let go of the pool and of the threads for reads; safe to call twice."""
        await self.pool.stop()
        if self._way_out is not None:
            self._way_out.stop()
        if self._till is not None:
            await self._till.close()
        if isinstance(self._read, ThreadReads):
            self._read.close()

    async def execute(self, claim: Claim) -> Finished:
        """Run one attempt to its end; cancelled, it raises :class:`lodger.engine.node.executor.Stopped`."""
        await looked(self._datasets, self._look)
        now_us = self._clock.now_us()
        attempt = Attempt(
            claim,
            self._read,
            self._datasets,
            now_us=now_us,
            budgets=self._budgets,
            people=self._people,
            on_log=self._on_log,
            fetching=self._fetching(claim),
            draws=None if claim.dry_run else self._till,
            clock_us=self._clock.now_us,
            opens=none_known if self._vault is None else partial(self._opened, self._vault, claim.tenant_id),
            numbers=self._read.numbers if isinstance(self._read, ThreadReads) else None,
        )
        try:
            report = await self._see_through(as_job(claim, attempt), attempt)
        except _Killed as killed:
            raise Stopped(finished(claim, attempt, killed.report)) from None
        finally:
            attempt.close()
        return finished(claim, attempt, report)

    async def _look(self, work: Callable[[Connection], Wall], database: ForeignDatabase | None) -> Wall:
        return await (self._read(work) if database is None else database.ask(work))

    def _fetching(self, claim: Claim) -> Fetching:
        made = Fetching(
            claim.tenant_id,
            claim.action_id,
            claim.step,
            None if self._way_out is None else self._way_out.send,
            dry=claim.dry_run and not claim.fetches,
            frame_bytes=claim.limits.frame_bytes,
        )
        if claim.tries > 1:
            made.kept = partial(self._kept, claim)
        return made

    async def _opened(self, vault: Vault, tenant_id: str, names: Collection[str]) -> dict[str, Opened]:
        try:
            return await self._read(lambda connection: secrets.opened(vault, connection, tenant_id, names))
        except Unavailable as error:
            # The operator's matter; the script learns no more than that it cannot have it now.
            _log.error("secrets of tenant %s: %s (%s)", tenant_id, error, error.fix)
            raise CallRefused("secret_unavailable", "that secret cannot be opened on this node") from error

    async def _kept(self, claim: Claim) -> dict[str, Answer]:
        return await self._read(
            partial(fetches.kept, tenant_id=claim.tenant_id, action_id=claim.action_id, step=claim.step)
        )

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
    good, redactor = outcome is Outcome.OK, attempt.redactor
    effects = attempt.effects() if good else tuple(attempt.fetching.shown)
    if redactor and error is not None:
        error = replace(error, message=redactor.text(error.message), stack=redactor.text(error.stack))
    return Finished(
        outcome=outcome,
        result=redactor.json(report.result) if good else None,
        error=error,
        logs=_merged(attempt, report),
        usage=report.usage,
        journal=attempt.journal if good and attempt.journal and not claim.dry_run else None,
        effects=tuple(redactor.value(effects)) if redactor else effects,
        fetched=tuple(attempt.fetching.fetched),
        spent=attempt.counters.spent(),
        drew=attempt.drew,
        nearly=tuple(attempt.nearly),
    )


def _merged(attempt: Attempt, report: Report) -> tuple[LogLine, ...]:
    """Give the script's lines, redacted, with what was said of its budgets in between."""
    lines, redactor = report.logs, attempt.redactor
    if redactor:
        lines = tuple(replace(line, text=redactor.text(line.text)) for line in lines)
    return tuple(sorted((*lines, *attempt.warnings), key=lambda line: line.us)) if attempt.warnings else lines


def effects_applier(clock: Clock) -> Callable[[Connection, Claim, Finished], None]:
    """Give what the ledger's commit calls to apply an attempt's journal in its own transaction."""

    def apply(connection: Connection, _claim: Claim, ended: Finished) -> None:
        if ended.journal is not None:
            commit.apply(connection, ended.journal, now_us=clock.now_us())

    return apply

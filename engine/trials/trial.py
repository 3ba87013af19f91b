"""The runner of every trial: a script runs in real walls on the data of a memory, a ledger or a record, and nothing is written.

A stage for tests (:class:`lodger.engine.testing.Stage`) is a whole ledger to throw away: its scripts run as attempts.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from lodger.engine.core.access.grants import DEFAULT, parse
from lodger.engine.core.attempt_record import AttemptRecord, Ended, of_report
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.errors import InputError
from lodger.engine.core.execution import Claim, Finished
from lodger.engine.core.settings import Settings, load
from lodger.engine.node.executors.attempt import sharpened
from lodger.engine.node.executors.by_kind import with_checked_params
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.executors.sandbox_executor import (
    SandboxExecutor,
    as_job,
    demanded,
    finished,
    script_bundle,
)
from lodger.engine.node.host import Host
from lodger.engine.trials.claims import Source, claim, runnable_files
from lodger.engine.trials.memory import memory_side
from lodger.engine.trials.recorded_host import STOPPED, RecordedHost
from lodger.sandbox.job import Bundle, Job, Report, ScriptError
from lodger.sandbox.job import Host as JobHost
from lodger.sandbox.limits import LIMITS, Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool
from lodger.sandbox.runtimes import native_libraries
from lodger.sandbox.runtimes.js.artefact import ensure
from lodger.sandbox.wasm.pool import WasmPool

#: Nothing is sent, so a script tried alone may show whom it would write to.
GRANTED = (*DEFAULT.split(), "mail:*")
_MAXIMUM = {spec.name: spec.maximum for spec in LIMITS}


class Runs(Protocol):
    """A pool of workers."""

    async def run(self, job: Job, host: JobHost) -> Report:
        """Run one job in a new worker and return its report."""
        ...


@dataclass(frozen=True, slots=True)
class Tried:
    """How a trial ended.

    Attributes:
        requested: the effects that the script asked for, also if it failed.
        walls: maps each wall's name to whether it was active.
    """

    finished: Finished
    requested: tuple[dict[str, Any], ...] = ()
    walls: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trials:
    """Workers, and the data that host calls of trials are answered from."""

    pool: Runs
    side: HostSide

    async def run(self, claim: Claim) -> Tried:
        """Run the claim of a trial."""
        try:
            claim = with_checked_params(claim)
        except InputError as refused:
            return Tried(Finished(Outcome.BAD_REQUEST, error=ScriptError("BadRequest", refused.what)))
        attempt = await self.side.attempt(claim)
        try:
            report = await self.pool.run(as_job(claim, attempt), attempt)
        finally:
            attempt.close()
        return Tried(finished(claim, attempt, report), attempt.effects(), report.walls)


@asynccontextmanager
async def on_memory(
    settings: Settings, runtime: str, *, wasm: bool, progress: Callable[[str], None] = lambda _text: None
) -> AsyncIterator[Trials]:
    """Open trials on collections in memory, empty at first.

    Raises:
        SandboxError: the host lacks a wall, or the runtime cannot be prepared.
    """
    async with workers(settings, runtime, wasm=wasm, progress=progress) as pool, memory_side(settings) as side:
        yield Trials(pool, side)


def try_script(
    source: str | Source,
    params: object,
    limits: Limits,
    *,
    runtime: str = "quickjs",
    progress: Callable[[str], None] = lambda _text: None,
    grants: Sequence[str] = (),
) -> Tried:
    """Run a script once on empty collections in memory.

    Args:
        source: the script's text, its files by name with main.js among them, or the bytes of a WebAssembly module.
        params: what a script sees as ``action.input``, and all that a module reads from its standard input.
        runtime: what executes a script's text; the caller's choice, never the script's.
        progress: called if the runtime has to be compiled first.
        grants: grants beside the default ones; read-only requests to granted hosts are sent.

    Raises:
        InputError: grant_unknown.
        SandboxError: the host lacks a wall, or the runtime cannot be prepared.
    """
    if isinstance(source, dict):
        prepared = runnable_files(source)
        if isinstance(prepared, ScriptError):
            return Tried(Finished(Outcome.COMPILE_ERROR, error=prepared))
        source = prepared
    elif isinstance(source, str):
        source = {"main.js": source}
    one = claim(source, params, grants=parse([*GRANTED, *grants]), limits=limits, now_us=SystemClock().now_us())

    async def once() -> Tried:
        async with on_memory(load(), runtime, wasm=one.wasm is not None, progress=progress) as trials:
            return await trials.run(one)

    return asyncio.run(once())


@asynccontextmanager
async def on_ledger(host: Host) -> AsyncIterator[Trials]:
    """Open trials on the present data of a ledger.

    Raises:
        SandboxError: the host cannot start the sandbox.
    """
    executor = SandboxExecutor.of(host, workers=1)
    try:
        await executor.start()
        yield Trials(executor.pool, executor.side)
    finally:
        await executor.stop()


@asynccontextmanager
async def workers(
    settings: Settings, runtime: str, *, wasm: bool, progress: Callable[[str], None] = lambda _text: None
) -> AsyncIterator[Pool | WasmPool]:
    """Start a pool of one worker, and stop it at the end of the block.

    Args:
        progress: called if the runtime has to be compiled first.

    Raises:
        SandboxError: the host lacks a wall, or the runtime cannot be prepared.
    """
    pool: Pool | WasmPool
    if wasm:
        pool = WasmPool(**demanded(settings))
    elif runtime == "quickjs":
        native_libraries.require(settings.profile, runtime)  # baking loads it, before the pool starts
        ensure(settings.cache_dir, progress=progress)
        pool = Pool(size=1, cache=settings.cache_dir, **demanded(settings))
    else:
        pool = Pool(runtime=runtime, size=1, **demanded(settings))
    try:
        await pool.start()
        yield pool
    finally:
        await pool.stop()


async def run_again(
    pool: Runs, record: AttemptRecord, source: Source, *, edited: bool, tenant: str = "replay"
) -> tuple[RecordedHost, Ended]:
    """Run a source with the input and the answers of a record; return the host with the calls that it made, and its end.

    Args:
        edited: whether it is another source than the recorded one.
        tenant: owner of the compiled WebAssembly modules that are used.
    """
    host = RecordedHost(record)
    if isinstance(source, bytes):
        bundle = Bundle({}, record.context, wasm=source)
    else:
        bundle = script_bundle(source, record.context)
    job = Job(
        bundle,
        limits=_limits(record, edited=edited),
        tag=f"replay {record.script}#{record.attempt}",
        now_us=record.now_us,
        tenant=tenant,
        seed=bytes.fromhex(record.seed),
        trace=record.trace,
        stop=host.stop,
    )
    report = await pool.run(job, host)
    outcome, error = sharpened(host.refused, report.outcome, report.error), report.error
    if error is not None and outcome is not report.outcome:
        error = replace(error, name="CallRefused")
    return host, of_report(outcome, error, report)


def _limits(record: AttemptRecord, *, edited: bool) -> Limits:
    """Return the limits of a replay: a slower host gets more time for a run that was not stopped by the limit of time."""
    limits, outcome = record.process_limits, record.ended.outcome
    if edited or outcome in STOPPED:
        return limits
    return replace(limits, cpu_ms=_MAXIMUM["cpu_ms"])

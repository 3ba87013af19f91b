"""The runner of every trial: a script runs in real walls on the data of a memory or a ledger, and nothing is written.

A stage for tests (:class:`lodger.engine.testing.Stage`) is a whole ledger to throw away: its scripts run as attempts.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import StaticPool

from lodger.engine.capabilities.session import no_addresses, unchecked
from lodger.engine.core.access.grants import DEFAULT, parse
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.errors import InputError
from lodger.engine.core.execution import Claim
from lodger.engine.core.functions import PlatformFunction
from lodger.engine.core.settings import Settings, load
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.effects.finished import Finished
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.executors.by_kind import with_checked_params
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.executors.sandbox_executor import Ran, SandboxExecutor, demanded
from lodger.engine.node.node_environment import NodeEnvironment
from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.script_data import TABLES
from lodger.engine.trials.claims import Source, claim, runnable_files
from lodger.sandbox.job import Report, ScriptError
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool
from lodger.sandbox.regex_literals import misread
from lodger.sandbox.runtimes import native_libraries
from lodger.sandbox.runtimes.js.artefact import ensure
from lodger.sandbox.source_faults import explained, faults, idle
from lodger.sandbox.wasm.pool import WasmPool

#: Nothing is sent, so a script tried alone may show whom it would write to.
GRANTED = (*DEFAULT.split(), "mail:*")
T = TypeVar("T")
S = TypeVar("S", SandboxExecutor, Pool | WasmPool)


class MemoryStore:
    """An in-memory database with Lodger's tables for scripts, initially empty."""

    def __init__(self) -> None:
        self.engine: Engine = create_engine(
            "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
        )
        metadata.create_all(self.engine, tables=list(TABLES))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run a query at once: no disk is involved."""
        with self.engine.connect() as connection:
            return work(connection)

    def close(self) -> None:
        """Close the database; safe to call twice."""
        self.engine.dispose()


@asynccontextmanager
async def on_ledger(host: NodeEnvironment) -> AsyncIterator[SandboxExecutor]:
    """Open an executor of trials on the present data of a ledger.

    Raises:
        SandboxError: the host cannot start the sandbox.
    """
    async with _started(SandboxExecutor.of(host, workers=1)) as executor:
        yield executor


async def run(executor: SandboxExecutor, claim: Claim) -> Ran:
    """Run the claim of a trial, once its params satisfy the declaration of its version."""
    try:
        return await executor.run(with_checked_params(claim))
    except InputError as refused:
        return not_run(Outcome.BAD_REQUEST, ScriptError("BadRequest", refused.what))


def not_run(outcome: Outcome, error: ScriptError) -> Ran:
    """Return the end of a trial whose script was refused before it ran."""
    return Ran(Finished(outcome, error=error), Report(outcome, error=error))


def try_script(
    source: str | Source,
    params: object,
    limits: Limits,
    *,
    runtime: str = "quickjs",
    progress: Callable[[str], None] = lambda _text: None,
    grants: Sequence[str] = (),
    fetches: bool = False,
    functions: Iterable[PlatformFunction] = (),
) -> Ran:
    """Run a script once on empty collections in memory.

    Args:
        source: the script's text, its files by name, or the bytes of a WebAssembly module.
        params: ``action.input`` of a script, and the whole standard input of a module.
        runtime: executes a script's text; the caller's choice, never the script's.
        progress: called if the runtime has to be compiled first.
        grants: grants beside the default ones; read-only requests to granted hosts are sent.
        fetches: also send the other requests.
        functions: what scripts may call of a platform.

    Raises:
        InputError: grant_unknown.
        SandboxError: the host lacks a wall, or the runtime cannot be prepared.
    """
    if isinstance(source, dict):
        prepared = runnable_files(source)
        if isinstance(prepared, ScriptError):
            return not_run(Outcome.COMPILE_ERROR, prepared)
        source = prepared
    elif isinstance(source, str):
        source = {"main.js": source}
    files = source if isinstance(source, dict) else {}
    problem = (misread(files) if runtime == "quickjs" else None) or next(faults(files), None)
    if problem is not None:
        return not_run(Outcome.COMPILE_ERROR, problem)
    one = claim(
        source, params, grants=parse([*GRANTED, *grants]), limits=limits, now_us=SystemClock().now_us(), fetches=fetches
    )

    async def run_once() -> Ran:
        """Run the script once on empty collections: no secrets, people or other scripts."""
        settings, store, datasets = load(), MemoryStore(), Datasets()
        for each in functions:
            datasets.put_function(each)
        side = HostSide(
            store.read, datasets, SystemClock(), people=no_addresses, way_out=WayOut(settings), check_script=unchecked
        )
        pool = _pool(settings, runtime, wasm=one.wasm is not None, progress=progress)
        try:
            async with _started(SandboxExecutor(pool, side)) as executor:
                return await run(executor, one)
        finally:
            store.close()

    ran = asyncio.run(run_once())
    if ran.report.outcome is Outcome.OK and (problem := idle(files)) is not None:
        return not_run(Outcome.COMPILE_ERROR, problem)
    error = explained(ran.report.error, files)
    return replace(ran, finished=replace(ran.finished, error=error), report=replace(ran.report, error=error))


@asynccontextmanager
async def workers(
    settings: Settings, runtime: str, *, wasm: bool, progress: Callable[[str], None] = lambda _text: None
) -> AsyncIterator[Pool | WasmPool]:
    """Start one worker for trials that bring their own answers to host calls, and stop it at the end of the block.

    Args:
        progress: called if the runtime has to be compiled first.

    Raises:
        SandboxError: the host lacks a wall, or the runtime cannot be prepared.
    """
    async with _started(_pool(settings, runtime, wasm=wasm, progress=progress)) as pool:
        yield pool


@asynccontextmanager
async def _started(startable: S) -> AsyncIterator[S]:
    """Start something for a block, and stop it at its end."""
    try:
        await startable.start()
        yield startable
    finally:
        await startable.stop()


def _pool(settings: Settings, runtime: str, *, wasm: bool, progress: Callable[[str], None]) -> Pool | WasmPool:
    """Return a pool of one worker, not yet started."""
    if wasm:
        return WasmPool(**demanded(settings))
    if runtime == "quickjs":
        native_libraries.require(settings.profile, runtime)  # baking loads it, before the pool starts
        ensure(settings.cache_dir, progress=progress)
    return Pool(runtime=runtime, size=1, cache=settings.cache_dir, **demanded(settings))

"""One attempt behind real walls without a ledger: collections in memory, effects shown and discarded."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import StaticPool

from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.access.grants import DEFAULT, Grants, parse
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.execution import Claim, Finished
from lodger.engine.core.settings import Settings, load
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.node.executors.sandbox_executor import as_job, demanded, merged, whole_usage
from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.script_data import TABLES
from lodger.engine.store.scripts import source_maps
from lodger.engine.store.stored_modules import MAP
from lodger.sandbox.job import Report, ScriptError
from lodger.sandbox.limits import Limits
from lodger.sandbox.nodejs import type_stripping
from lodger.sandbox.nodejs.intl_process import IntlProcesses
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool
from lodger.sandbox.runtimes import native_libraries
from lodger.sandbox.runtimes.js.artefact import ensure
from lodger.sandbox.wasm.pool import WasmPool

T = TypeVar("T")
#: Nothing is sent, so a script tried alone may show whom it would write to.
GRANTED = (*DEFAULT.split(), "mail:*")
ACTION_ID = "00000000-0000-7000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a dry run. ``outcome`` is the report's, or that of a refused host call."""

    outcome: Outcome
    report: Report
    effects: tuple[dict[str, Any], ...]


def as_dict(ended: "DryRun | Finished") -> dict[str, Any]:
    """Return the object that ``--json`` prints for a dry run."""
    report = ended.report if isinstance(ended, DryRun) else ended
    error = report.error
    return {
        "outcome": ended.outcome.value,
        "result": None if report.result is None else json.loads(report.result),
        "error": None if error is None else asdict(error),
        "logs": [{"level": line.level, "text": line.text} for line in report.logs],
        "effects": list(ended.effects),
        "usage": {
            "cpu_ms": round(report.usage.cpu_ms, 3),
            "wall_ms": round(report.usage.wall_ms, 3),
            "memory_peak_bytes": report.usage.memory_peak_bytes,
            "host_calls": report.usage.host_calls,
        },
        "walls": ended.report.walls if isinstance(ended, DryRun) else {},
    }


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


def dry_run(
    source: str | bytes | dict[str, str],
    params: object,
    limits: Limits,
    *,
    runtime: str = "quickjs",
    progress: Callable[[str], None] = lambda _text: None,
    grants: Sequence[str] = (),
) -> DryRun:
    """Run a script once.

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
            return DryRun(Outcome.COMPILE_ERROR, Report(Outcome.COMPILE_ERROR, error=prepared), ())
        source = prepared
    return asyncio.run(_dry_run(source, params, limits, runtime, progress, parse([*GRANTED, *grants])))


def runnable_files(files: dict[str, str]) -> dict[str, str] | ScriptError:
    """Return what runs of an author's files: TypeScript as JavaScript, the source map unpacked; or the error of TypeScript."""
    stripped = type_stripping.strip("dry-run", files)
    if stripped.error is not None:
        return stripped.error
    source_map = files.get(source_maps.FILE)
    made = files | stripped.files | ({} if source_map is None else {MAP: source_maps.unpacked(source_map)})
    made.pop(source_maps.FILE, None)
    return made


@asynccontextmanager
async def workers(
    settings: Settings, runtime: str, *, wasm: bool, progress: Callable[[str], None] = lambda _text: None
) -> AsyncIterator[Pool | WasmPool]:
    """Start a pool of one worker, and stop it at the end of the block.

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


async def _dry_run(
    source: str | bytes | dict[str, str],
    params: object,
    limits: Limits,
    runtime: str,
    progress: Callable[[str], None],
    granted: Grants,
) -> DryRun:
    now_us = SystemClock().now_us()
    claim = Claim(
        action_id=ACTION_ID,
        tenant_id="dry-run",
        schedule_id=None,
        script_name="main",
        script_version=1,
        modules={"main.js": source} if isinstance(source, str) else source if isinstance(source, dict) else {},
        wasm=source if isinstance(source, bytes) else None,
        attempt=1,
        step=0,
        lease_epoch=0,
        origin="run_now",
        slot_us=None,
        due_us=now_us,
        started_us=now_us,
        params=params,
        grants=granted,
        limits=limits,
        dry_run=True,
    )
    settings = load()
    store, way_out, intl = MemoryStore(), WayOut(settings), IntlProcesses()
    try:
        fetch_state = FetchState(
            claim.tenant_id, claim.action_id, 0, way_out.send, dry=True, frame_bytes=limits.frame_bytes
        )
        attempt = Attempt(claim, store.read, Datasets(), now_us=now_us, fetch_state=fetch_state, intl=intl)
        async with workers(settings, runtime, wasm=claim.wasm is not None, progress=progress) as pool:
            report = await pool.run(as_job(claim, attempt), attempt)
        attempt.close()
        report = replace(report, logs=merged(attempt, report), usage=whole_usage(attempt, report))
        return DryRun(attempt.verdict(report.outcome, report.error), report, attempt.effects())
    finally:
        intl.close()
        way_out.stop()
        store.close()

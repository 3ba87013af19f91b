"""Recorded attempts, run again in the walls of this machine: as they were, with an edited source, or with another version."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any

from lodger.engine.core.errors import NotFound, Usage
from lodger.engine.core.settings import load
from lodger.engine.features.replays import attempt_record
from lodger.engine.features.replays.agreement import UNDECIDED, ShadowRun, agreement
from lodger.engine.features.replays.attempt_record import AttemptRecord
from lodger.engine.features.replays.replay import Replayed, replay, source_of
from lodger.engine.output import script_files
from lodger.engine.output.files import read_whole
from lodger.engine.store.records import Action
from lodger.engine.store.stored_modules import MAP, is_authored
from lodger.engine.trials.claims import Source, runnable_files
from lodger.engine.trials.trial import workers
from lodger.sandbox.job import Runs, ScriptError
from lodger.sandbox.regex_literals import misread

NATIVE = "quickjs-native"
#: Maximum number of runs, and seconds after which no further one begins.
MAX_RUNS = 1000
MAX_S = 600.0
#: Verdict on a run without a record.
NO_RECORD = "no record"
_PAGE = 100


def run(
    record: AttemptRecord, edited: Source | None = None, progress: Callable[[str], None] = lambda _text: None
) -> Replayed:
    """Replay a record in a new worker.

    The record does not choose the runtime without the WebAssembly wall: the setting LODGER_RUNTIME of this machine does.

    Args:
        edited: source to run instead of the recorded one.
        progress: called if the runtime has to be compiled first.

    Raises:
        InputError: record_invalid.
        SandboxError: this machine lacks a wall, or the runtime cannot be prepared.
    """
    runtime = runtime_of(record)
    source = source_of(record) if edited is None else with_copies(record, edited)

    async def replay_in_walls() -> Replayed:
        """Replay the attempt in a worker of this machine."""
        async with workers(load(), runtime, wasm=isinstance(source, bytes), progress=progress) as pool:
            return await replay(pool, record, source, edited=edited is not None)

    return asyncio.run(replay_in_walls())


def runtime_of(record: AttemptRecord) -> str:
    """Return the runtime of a record, if this machine lets records choose it.

    Raises:
        InputError: record_invalid.
    """
    runtime = attempt_record.checked(record).runtime
    if runtime not in {"quickjs", NATIVE, "wasm"}:
        raise attempt_record.invalid(f"it names the unknown runtime {runtime!r}")
    if runtime == NATIVE and load().runtime != NATIVE:
        raise attempt_record.invalid(
            f"it names {NATIVE}, for trusted code; set LODGER_RUNTIME={NATIVE} if you trust this one"
        )
    return runtime


def with_copies(record: AttemptRecord, edited: Source) -> Source:
    """Return an edited source with the recorded copies of the other scripts' files that it may import."""
    if isinstance(edited, bytes):
        return edited
    copies = {file: text for file, text in (record.modules or {}).items() if file != MAP and not is_authored(file)}
    return edited | copies


def edited_source(path: Path) -> Source:
    """Read the source of ``--script``: a file, a folder or a WebAssembly module.

    Raises:
        Usage: it cannot be read, or is TypeScript with an error, or has an expression that the runtime would misread.
    """
    files = script_files.script(path)
    if isinstance(files, bytes):
        return files
    prepared = runnable_files(files)
    problem = prepared if isinstance(prepared, ScriptError) else None
    if problem is None and load().runtime == "quickjs":
        problem = misread(files)
    if problem is not None:
        raise Usage("usage.file", file=problem.file, line=problem.line, reason=problem.message)
    assert isinstance(prepared, dict)
    return prepared


def read_file(path: Path) -> AttemptRecord:
    """Read a record from a file that ``lodger action record`` wrote.

    Raises:
        Usage: it cannot be read.
        InputError: record_invalid.
    """
    try:
        body = json.loads(read_whole(path, attempt_record.MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise attempt_record.invalid(f"{path} is not JSON: {error}") from None
    return attempt_record.read(body)


def rehearse(
    engine: Any,
    tenant: str,
    name: str,
    since: datetime,
    new: Source | int | None,
    limit: int,
    *,
    done: Callable[[int], None] = lambda _number: None,
    progress: Callable[[str], None] = lambda _text: None,
) -> list[ShadowRun]:
    """Run the recorded runs of a script since an instant again, newest first, one after the other in one sandbox.

    Args:
        engine: an engine, or a client with the same verbs.
        new: a source; the number of a stored version; None for the latest.
        limit: maximum number of runs.
        done: called with the number of compared runs.
        progress: called with the text of a step that takes long.

    Raises:
        NotFound: script_unknown.
        InputError: record_invalid.
        SandboxError: this machine lacks a wall, or the runtime cannot be prepared.
    """
    version = engine.scripts.get(tenant, name, new if isinstance(new, int) else None).version
    past = _past(engine, tenant, name, since, min(limit, MAX_RUNS))

    async def rehearse_in_walls() -> list[ShadowRun]:
        """Replay the past runs with the new version, one after the other."""
        found: list[ShadowRun] = []
        pools: dict[tuple[str, bool], Runs] = {}
        end = monotonic() + MAX_S
        async with AsyncExitStack() as stack:
            for action in past:
                if monotonic() > end:
                    progress(f"stopped after {MAX_S:.0f} s, at the run of {action.due_at}")
                    break
                found.append(await rehearse_action(action, pools, stack))
                done(len(found))
        return found

    async def rehearse_action(action: Action, pools: dict[tuple[str, bool], Runs], stack: AsyncExitStack) -> ShadowRun:
        """Replay one past run with the new version, and compare."""
        slot = action.slot or action.due_at
        record = _record(engine, tenant, action, name)
        if record is None:
            return ShadowRun(action.id, action.step, slot, NO_RECORD)
        then = source_of(record)
        if isinstance(new, dict | bytes):
            source = with_copies(record, new)
        else:
            source = source_of(engine.actions.record(tenant, action.id, version=version))
        if isinstance(source, bytes) != isinstance(then, bytes):
            return ShadowRun(
                action.id, record.step, slot, UNDECIDED, "a script and a WebAssembly module are given different input"
            )
        settings, runtime = load(), runtime_of(record)
        key = runtime, isinstance(then, bytes)
        if key not in pools:
            pools[key] = await stack.enter_async_context(workers(settings, runtime, wasm=key[1], progress=progress))
        return (await agreement(pools[key], record, then, source, slot))[0]

    return asyncio.run(rehearse_in_walls())


def _past(engine: Any, tenant: str, name: str, since: datetime, limit: int) -> Iterator[Action]:
    """Yield the ended runs of a script that started, newest first."""
    cursor, left = None, limit
    while left > 0:
        page: Any = engine.actions.list(tenant, script=name, since=since, limit=_PAGE, cursor=cursor)
        for each in page:
            if each.started_at is not None and each.finished_at is not None and left > 0:
                left -= 1
                yield each
        cursor = page.next
        if cursor is None:
            return


def _record(engine: Any, tenant: str, action: Action, name: str) -> AttemptRecord | None:
    """Return the record of a run; None if it has none, or it is of another step's script."""
    try:
        found: AttemptRecord = engine.actions.record(tenant, action.id)
    except NotFound:
        return None
    return found if found.script == name and (found.modules or found.wasm) else None


def summary(found: list[ShadowRun]) -> dict[str, int]:
    """Return the number of runs by verdict."""
    counted = Counter(each.verdict for each in found)
    return {verdict.replace(" ", "_"): counted[verdict] for verdict in ("agrees", "differs", "undecided", NO_RECORD)}

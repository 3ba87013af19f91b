"""Runs the recorded runs of a script again with another version, and counts where it agrees (``lodger script rehearse``)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

from lodger.engine.core.attempt_record import AttemptRecord
from lodger.engine.core.errors import NotFound
from lodger.engine.core.settings import load
from lodger.engine.store.records import Action
from lodger.engine.store.scripts.shadows import UNDECIDED, ShadowRun
from lodger.engine.trials.agreement import agreement
from lodger.engine.trials.claims import Source
from lodger.engine.trials.replay import source_of
from lodger.engine.trials.trial import workers
from lodger.engine.workbench.replays import runtime_of, with_copies
from lodger.sandbox.job import Runs

if TYPE_CHECKING:
    from lodger.engine.sync import Engine

#: Maximum number of runs, and seconds after which no further one begins.
MAX_RUNS = 1000
MAX_S = 600.0
#: Verdict on a run without a record.
NO_RECORD = "no record"
_PAGE = 100


def rehearse(
    engine: "Engine",
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
        new: a source; the number of a stored version; None for the latest.
        limit: maximum number of runs.
        done: called with the number of compared runs.
        progress: called with what takes long.

    Raises:
        NotFound: script_unknown.
        InputError: record_invalid.
        SandboxError: this machine lacks a wall, or the runtime cannot be prepared.
    """
    version = engine.scripts.get(tenant, name, new if isinstance(new, int) else None).version
    past = _past(engine, tenant, name, since, min(limit, MAX_RUNS))

    async def in_walls() -> list[ShadowRun]:
        found: list[ShadowRun] = []
        pools: dict[tuple[str, bool], Runs] = {}
        end = monotonic() + MAX_S
        async with AsyncExitStack() as stack:
            for action in past:
                if monotonic() > end:
                    progress(f"stopped after {MAX_S:.0f} s, at the run of {action.due_at}")
                    break
                found.append(await one(action, pools, stack))
                done(len(found))
        return found

    async def one(action: Action, pools: dict[tuple[str, bool], Runs], stack: AsyncExitStack) -> ShadowRun:
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
        return (await agreement(pools[key], record, then, source)).of_run(action.id, record.step, slot)

    return asyncio.run(in_walls())


def _past(engine: "Engine", tenant: str, name: str, since: datetime, limit: int) -> Iterator[Action]:
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


def _record(engine: "Engine", tenant: str, action: Action, name: str) -> AttemptRecord | None:
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

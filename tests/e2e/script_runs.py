"""Runs of whole scripts in real walls, on data of a shop."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.unit.data.shop import ALL, NOW_US, Frozen, Shop

from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool


@asynccontextmanager
async def running(shop: Shop) -> AsyncIterator[SandboxExecutor]:
    """Yield an executor with one worker, for scripts of the shop."""
    pool = Pool(size=1, cores=1, profile="trusted")
    executor = SandboxExecutor(pool, HostSide(shop.read, shop.datasets, Frozen()))
    await executor.start()
    try:
        yield executor
    finally:
        await executor.stop()


def claim(source: str, **more: Any) -> Claim:
    """Return the claim of a run of this script."""
    given: dict[str, Any] = {
        "action_id": "018f0000-0000-7000-8000-000000000001", "tenant_id": "one", "schedule_id": "s1", "script_name": "t",
        "script_version": 1, "modules": {"main.js": source}, "attempt": 1, "step": 0, "lease_epoch": 1, "origin": "slot",
        "slot_us": NOW_US, "due_us": NOW_US, "started_us": NOW_US, "tz": "Europe/Berlin",
        "upcoming_us": (NOW_US + 60_000_000,), "params": {"limit": 5}, "grants": ALL,
    }  # fmt: skip
    return Claim(**given | more)


def run(shop: Shop, source: str, **more: Any) -> Finished:
    async def go() -> Finished:
        async with running(shop) as executor:
            return await executor.execute(claim(source, **more))

    return asyncio.run(go())


def result(shop: Shop, source: str, **more: Any) -> Any:
    """Run a script that must succeed; return its result."""
    finished = run(shop, source, **more)
    assert finished.outcome is Outcome.OK, finished.error
    return json.loads(finished.result or "null")

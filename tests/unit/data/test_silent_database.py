"""A wall that ends while the database does not answer is the engine's fault; one that ends for another reason is the script's."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
from sqlalchemy import Connection
from tests.e2e.script_runs import claim
from tests.unit.data.shop import Frozen, Shop

from lodger.engine.core.execution import Finished
from lodger.engine.core.settings import Settings
from lodger.engine.data.sets import reads
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.store.drivers.patience import PATIENCE_S
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Blame, Outcome
from lodger.sandbox.pool import Pool

T = TypeVar("T")
WALL = Limits(wall_ms=600)


class Silent:
    """Answers the question that each attempt begins with, and no other."""

    def __init__(self, shop: Shop) -> None:
        self._shop, self._is_asked = shop, False

    async def __call__(self, work: Callable[[Connection], T]) -> T:
        if self._is_asked:
            await asyncio.get_running_loop().create_future()
        self._is_asked = True
        return await self._shop.read(work)


def run(shop: Shop, read: Callable[..., object], source: str) -> Finished:
    async def go() -> Finished:
        executor = SandboxExecutor(Pool(size=1, cores=1, profile="trusted"), read, shop.datasets, Frozen())  # type: ignore[arg-type]  # a server's part
        await executor.start()
        try:
            return await executor.execute(claim(source, limits=WALL))
        finally:
            await executor.stop()

    return asyncio.run(go())


@pytest.mark.parametrize("call", ["db.orders.find({})", "kv.get('k')"])
def test_waiting_for_a_silent_database_is_the_engines_fault(bare: Shop, call: str) -> None:
    ended = run(bare, Silent(bare), f"export default async () => {call}")
    assert ended.outcome is Outcome.ENGINE_FAULT
    assert ended.outcome.blames is Blame.ENGINE
    assert ended.error is not None
    assert "database did not answer" in ended.error.message


def test_a_script_that_uses_its_wall_up_is_to_blame(bare: Shop) -> None:
    ended = run(bare, bare.read, "export default async () => { await kv.get('k'); for (;;); }")
    assert ended.outcome is Outcome.WALL_LIMIT


def test_a_call_is_given_up_before_the_default_wall_and_a_lease_before_the_database() -> None:
    assert reads.STATEMENT_S + reads.SILENCE_S < Limits().wall_ms / 1000 < PATIENCE_S
    assert Settings().lease_s < PATIENCE_S

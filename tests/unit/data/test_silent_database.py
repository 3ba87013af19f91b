"""A wall that ends while the database does not answer is the engine's fault; one that ends for another reason is the script's."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.e2e.script_runs import claim
from tests.node.harness import Script, working
from tests.unit.data.shop import Frozen, Shop
from tests.unit.data.silent import Silent

from lodger.engine.cli.readiness import patiences
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.data.sets import reads
from lodger.engine.effects.finished import Finished
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.store.drivers.patience import PATIENCE_S
from lodger.sandbox.job import CallHandlerGone
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Blame, Outcome
from lodger.sandbox.pool import Pool

T = TypeVar("T")
WALL = Limits(wall_ms=600)


def run(shop: Shop, read: Callable[..., object], source: str) -> Finished:
    async def go() -> Finished:
        executor = SandboxExecutor(Pool(size=1, cores=1, profile="trusted"), HostSide(read, shop.datasets, Frozen()))  # type: ignore[arg-type]  # a server's part
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


def test_a_call_is_given_up_before_the_default_wall_and_a_lease_and_a_database_last() -> None:
    call = reads.STATEMENT_S + reads.SILENCE_S
    assert call < Limits().wall_ms / 1000
    assert call < Settings().lease_s < PATIENCE_S
    assert patiences(Settings()).state == "ok"
    warned = patiences(Settings(lease_s=6))
    assert (warned.state, "LODGER_LEASE_S" in (warned.fix or "")) == ("warn", True)


@pytest.mark.parametrize(
    "error", [CallHandlerGone("db1 at 10.0.0.7"), Unavailable("database_unreachable", place="db1", reason="no answer")]
)
def test_a_database_that_is_silent_before_an_attempt_begins_is_the_engines_fault_and_is_not_named(
    error: Exception, tmp_path: Path
) -> None:
    class Gone(Script):
        async def execute(self, claim: Claim) -> Finished:
            raise error

    async def go(folder: Path) -> None:
        async with working(folder, Gone()) as (engine, _node, signals):
            made = await engine.run_in("acme", "job", 0)
            await signals.wait("finished")
            (attempt, *_) = await engine.actions.attempts("acme", made.id)
            assert attempt.outcome == "engine_fault"
            assert attempt.error is not None
            assert attempt.error.message == "a service behind this script's calls could not be reached"

    asyncio.run(go(tmp_path))

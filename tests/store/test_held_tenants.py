"""Another transaction has locked a tenant: a commit writes the ends of the others, and only the next one waits for it."""

import asyncio
import threading

import pytest
from sqlalchemy import text
from tests.node.harness import Script, Signals
from tests.store.bench import OK, Bench

from lodger.engine import Engine
from lodger.engine.core.execution import Claim
from lodger.engine.effects import outcome_commit
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.outcome_commit import Committed
from lodger.engine.store.queue import ready_queue


@pytest.fixture(autouse=True)
def with_row_locks(kind: str) -> None:
    if kind == "sqlite":
        pytest.skip("SQLite has one writer: no other transaction locks anything")


def commit(bench: Bench, claims: list[Claim], awaited: set[str]) -> Committed:
    context, batch = bench.engine.context, [(each, OK) for each in claims]
    with context.database.write() as connection:
        asked = outcome_commit.ask(context, connection, bench.lease(), batch, bench.clock.us, awaited)
        return outcome_commit.commit(context, connection, bench.lease(), batch, bench.clock.us, asked=asked)


def test_the_ends_of_other_tenants_are_written(bench: Bench) -> None:
    for tenant in ("a", "b", "c"):
        bench.schedule(tenant_id=bench.tenant(tenant))
    bench.clock.advance(60)
    bench.tick()
    claims = bench.claim()
    bench.engine.tenants.suspend("c")
    bench.engine.tenants.delete("c")
    with bench.engine.context.database.write() as other:
        ready_queue.lock(other, ["a"])
        other.execute(text("SELECT 1"))  # the lock is taken with it
        passing = commit(bench, claims, set())
        again: list[Committed] = []
        waiting = threading.Thread(target=lambda: again.append(commit(bench, claims, {"a", "c"})))
        waiting.start()
    waiting.join(60)
    assert [each.tenant_id for each in passing.settled] == ["b"]
    # A deleted tenant cannot be locked: the next commit, which waits, finds that nothing is left to write.
    assert {each.tenant_id for each in passing.passed_by} == {"a", "c"}
    assert passing.lost == ()
    assert [each.tenant_id for each in again[0].settled] == ["a"]
    assert again[0].passed_by == ()
    assert {each.tenant_id for each in again[0].lost} == {"b", "c"}


class Gate(Script):
    """Answers when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = asyncio.Event()

    async def execute(self, claim: Claim) -> Finished:
        await self.opened.wait()
        return await super().execute(claim)


async def test_a_node_writes_them_when_the_lock_is_gone(bench: Bench) -> None:
    async with Engine.open(bench.engine.context.database.url) as engine:
        signals, gate = Signals(engine), Gate()
        async with engine.node(gate, "n1"):
            for tenant in ("a", "b"):
                await engine.tenants.create(tenant)
                await engine.scripts.put(tenant, "job", "export default () => 1")
                await engine.run_in(tenant, "job", "0s")
            await signals.wait("started", 2)
            with bench.engine.context.database.write() as other:
                ready_queue.lock(other, ["a"])
                other.execute(text("SELECT 1"))
                gate.opened.set()
            assert len(await signals.wait("finished", 2)) == 2

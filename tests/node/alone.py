"""A service alone: a real store and a bus, and what a service is given. No node, and nothing that stands in for one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from tests.node.harness import OK, SETTINGS

from lodger.engine import Engine
from lodger.engine.core.clock import Clock
from lodger.engine.core.events import (
    EventBus,
)
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.effects.finished import Executor, Finished, Stopped
from lodger.engine.node.context import NodeContext, NodeIdentity, ServerClock
from lodger.engine.node.db_executor import DbExecutor
from lodger.engine.node.ledger_loop.loop import LedgerLoop
from lodger.engine.node.running_attempts import RunningAttempts
from lodger.engine.policy.placement import unbounded
from lodger.engine.store.lifecycle import claims, leases
from lodger.engine.store.lifecycle.claims import Lease

E = TypeVar("E")


class Bench:
    """A store with a tenant and a script, and what a service is given."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        store, self.bus = engine.context, EventBus()
        self.db = DbExecutor(store.database, store.settings.lease_s)
        self.identity = NodeIdentity(store.ids.new(), "alone")
        self.context = NodeContext(
            store, ServerClock(store.clock, 15_000_000), store.settings, self.db, self.bus, self.identity
        )

    def heard(self, kind: type[E]) -> list[E]:
        """Return a list that grows with each event of a type."""
        found: list[E] = []
        self.bus.subscribe(kind, found.append)
        return found

    async def register(self, identity: NodeIdentity | None = None) -> Lease:
        """Take a lease, for this node or another one."""
        mine, store = identity or self.identity, self.engine.context
        mine.lease = await self.db.write(
            lambda connection: leases.register(store, connection, mine.id, mine.name, store.clock.now_us())
        )
        assert mine.lease is not None
        return mine.lease

    async def claim(self, number: int = 1) -> list[Claim]:
        """Ask for runs and claim them under this node's lease."""
        lease, store = self.identity.lease or await self.register(), self.engine.context
        for _ in range(number):
            await self.engine.run_in("acme", "job", 0)
        return await self.db.write(
            lambda connection: claims.claim(store, connection, lease, number, store.clock.now_us(), unbounded(number))()
        )

    async def state(self, claim: Claim) -> str:
        """Return the state of a claim's action."""
        return (await self.engine.actions.get(None, claim.action_id)).state


@asynccontextmanager
async def bench(place: Path | str, settings: Settings = SETTINGS, clock: Clock | None = None) -> AsyncIterator[Bench]:
    """Open a store in a folder, or the one of a database's address."""
    place = str(place / "ledger.db") if isinstance(place, Path) else place
    async with Engine.open(place, settings=settings, clock=clock) as engine:
        await engine.tenants.create("acme", limits={"concurrent_runs": 8})
        await engine.scripts.put("acme", "job", "export default () => 1")
        made = Bench(engine)
        try:
            yield made
        finally:
            made.db.close()


class Hanging:
    """Runs every claim until it is killed, and says then what it used."""

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def execute(self, claim: Claim) -> Finished:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            raise Stopped(OK) from None
        return OK


@asynccontextmanager
async def looping(alone: Bench, executor: Executor) -> AsyncIterator[tuple[LedgerLoop, RunningAttempts]]:
    """Make a ledger loop of which the test carries out the rounds, and its attempts, which are killed at the end."""
    attempts = RunningAttempts(alone.context, executor.execute)
    try:
        yield LedgerLoop(alone.context, attempts), attempts
    finally:
        attempts.kill()
        await asyncio.gather(*attempts.tasks, return_exceptions=True)

"""A real node on a real ledger, with signals instead of sleeps: a test waits for the node's events."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from lodger.engine import Engine
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.effects.finished import Finished
from lodger.engine.node.node import Node
from lodger.sandbox.outcome import Outcome

OK = Finished(Outcome.OK, result="1")
SETTINGS = Settings(
    sqlite_synchronous="NORMAL", slots=8, concurrent_runs=8, min_interval_s=1, poll_s=0.05, drain_s=0.1, lease_s=6
)


class Script:
    """Executor that answers claims as given; keeps what it saw and what was killed."""

    def __init__(self, *, hang: bool = False, answer: Callable[[Claim], Finished] = lambda _claim: OK) -> None:
        self.hang = hang
        self.answer = answer
        self.seen: list[Claim] = []
        self.killed: list[Claim] = []
        self.starts = self.stops = 0

    async def start(self) -> None:
        self.starts += 1

    async def stop(self) -> None:
        self.stops += 1

    async def execute(self, claim: Claim) -> Finished:
        self.seen.append(claim)
        try:
            if self.hang:
                await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.killed.append(claim)
            raise
        return self.answer(claim)


class Signals:
    """Every event so far, and a way to wait for the next of a kind."""

    def __init__(self, engine: Engine) -> None:
        self.events: list[Event] = []
        self._came = asyncio.Event()
        engine.on_event(self._hear)

    def _hear(self, event: Event) -> None:
        """Note an event and wake those who wait."""
        self.events.append(event)
        self._came.set()

    async def until(self, true: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds: it is checked after each event, and now and then."""
        async with asyncio.timeout(120):
            while True:
                self._came.clear()
                if await true():
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._came.wait(), 0.1)

    async def wait(self, kind: str, number: int = 1) -> list[Event]:
        """Wait until that many of a kind have come."""
        async with asyncio.timeout(120):
            while len(found := [event for event in self.events if event.kind == kind]) < number:
                self._came.clear()
                await self._came.wait()
        return found


@asynccontextmanager
async def working(
    folder: Path, script: Script, settings: Settings = SETTINGS
) -> AsyncIterator[tuple[Engine, Node, Signals]]:
    """An engine with a tenant, a script and a node at work."""
    async with Engine.open(str(folder / "ledger.db"), settings=settings) as engine:
        await engine.tenants.create("acme")
        await engine.scripts.put("acme", "job", "export default () => 1")
        signals = Signals(engine)
        async with engine.node(script, "n1") as node:
            yield engine, node, signals

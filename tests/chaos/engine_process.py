"""One real engine process: ``python engine_process.py PATH NAME MODE``; prints its events to stdout, ends on SIGTERM.

MODE ``work`` answers every claim, ``punctual``, ``race`` and ``even`` too with other settings (:data:`OTHERWISE`);
``hold`` holds its claims until SIGUSR1 and prints how it lost them. Every applied journal writes a row to
``effects_seen``, which has no unique key, so that a repeated effect is visible.
"""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack

from tests.traces import Traces

from lodger.engine import Engine
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.effects.finished import Finished
from lodger.engine.node.ledger_loop import ends
from lodger.engine.store.drivers import patience
from lodger.sandbox.outcome import Outcome

SETTINGS = Settings(
    slots=50,
    min_interval_s=1,
    schedules_per_tenant=10_000,
    lease_s=1.0,
    poll_s=0.05,
    sqlite_synchronous="NORMAL",
    drain_s=0.2,
)


#: In a race no lease may be lost and no slot missed, even if a disk stalls, and a stopped process ends its attempts, because claims that it
#: hands back would run elsewhere.
OTHERWISE: dict[str, dict[str, float]] = {
    "race": {"lease_s": 60.0, "drain_s": 60.0, "missed_after_s": 600.0},
    # Long enough to keep the lease on a busy machine, short enough to wait for its end.
    "keep": {"lease_s": 3.0},
    "relief": {"lease_s": 12.0},
    # Slots of a short outage are missed slots.
    "punctual": {"missed_after_s": 1.0},
    "hold": {"lease_s": 3.0},
}
#: How long a silent server is waited for.
PATIENCE_S = {"keep": 1.0, "hold": 600.0}


class Worker:
    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.traces: Traces | None = None
        self.let_go = asyncio.Event()

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def execute(self, claim: Claim) -> Finished:
        if self.mode == "hold" or (self.mode == "keep" and claim.schedule_id is None):
            self.let_go.clear()
            tell(f"holding {claim.action_id}")
            await self.let_go.wait()
        await asyncio.sleep(0)
        assert self.traces is not None
        return Finished(Outcome.OK, result="1", journal=self.traces.journal(claim, NAME))


def tell(line: str) -> None:
    """Write a line for the test that started this process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def once(reported: asyncio.Event) -> None:
    """Wait for an event and clear it."""
    await reported.wait()
    reported.clear()


async def main(path: str, mode: str) -> None:
    ended = asyncio.Event()
    if mode != "relief":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    settings = SETTINGS.model_copy(update=OTHERWISE.get(mode, {}))
    ends.COMMIT_BATCH, patience.PATIENCE_S = 20, PATIENCE_S.get(mode, patience.PATIENCE_S)
    worker = Worker(mode)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, worker.let_go.set)

    def reported(event: Event) -> None:
        if mode in {"hold", "keep", "race"} and event.kind in {"lost", "lease_lost"}:
            tell(event.kind)
        if event.kind == "ledger_replaced":
            tell(f"ledger_replaced {event.details['lost']}")

    async with AsyncExitStack() as stack:
        for left in reversed(range(10)):
            try:
                engine = await stack.enter_async_context(Engine.open(path, settings=settings))
                break
            except Unavailable:  # connecting may time out on a busy machine
                if not left:
                    raise
        engine.on_event(reported)
        worker.traces = Traces(engine.datasets)
        if mode == "relief":
            tell("up")
            while True:
                await once(worker.let_go)
                async with engine.node(worker, NAME):
                    tell("on")
                    await once(worker.let_go)
                tell("off")
        async with engine.node(worker, NAME):
            tell("up")
            await ended.wait()


if __name__ == "__main__":
    NAME = sys.argv[2]
    asyncio.run(main(sys.argv[1], sys.argv[3]))

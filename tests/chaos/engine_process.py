"""One real engine process: ``python engine_process.py PATH NAME MODE``; tells on stdout what it does, ends on SIGTERM.

MODE ``work`` answers every claim, ``race`` too with a lease of a minute;
``hang`` never answers, ``hold`` when it is sent SIGUSR1, and tells how it lost what it held.
Every applied journal leaves a row in ``effects_seen``, which
has no unique key: an effect that happens twice is seen.
"""

import asyncio
import signal
import sys

from sqlalchemy import Connection, text

from lodger.engine import Engine
from lodger.engine.events import Event
from lodger.engine.node.executor import Claim, Finished
from lodger.engine.settings import Settings
from lodger.sandbox.outcome import Outcome

SETTINGS = Settings(
    slots=50,
    min_interval_s=1,
    schedules_per_tenant=10_000,
    lease_s=1.0,
    poll_s=0.05,
    sqlite_synchronous="NORMAL",
    commit_batch=20,
    drain_s=0.2,
)


class Worker:
    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.let_go = asyncio.Event()

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def execute(self, claim: Claim) -> Finished:
        if self.mode == "hang":
            sys.stdout.write(f"hanging {claim.action_id}\n")
            sys.stdout.flush()
            await asyncio.get_running_loop().create_future()
        if self.mode == "hold":
            sys.stdout.write(f"holding {claim.action_id}\n")
            sys.stdout.flush()
            await self.let_go.wait()
        await asyncio.sleep(0)
        return Finished(Outcome.OK, result="1", journal=claim.action_id)


def seen(connection: Connection, claim: Claim, finished: Finished) -> None:
    connection.execute(text("INSERT INTO effects_seen VALUES (:id, :name)"), {"id": finished.journal, "name": NAME})


async def main(path: str, mode: str) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    # In a race no lease is to be lost: a disk that stalls for a second would turn it into a test of something else.
    settings = SETTINGS.model_copy(update={"lease_s": 60.0}) if mode == "race" else SETTINGS
    worker = Worker(mode)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, worker.let_go.set)

    def told(event: Event) -> None:
        if mode == "hold" and event.kind in {"lost", "lease_lost"}:
            sys.stdout.write(f"{event.kind}\n")
            sys.stdout.flush()

    async with Engine.open(path, settings=settings) as engine, engine.node(worker, NAME, apply_effects=seen):
        engine.on_event(told)
        sys.stdout.write("up\n")
        sys.stdout.flush()
        await ended.wait()


if __name__ == "__main__":
    NAME = sys.argv[2]
    asyncio.run(main(sys.argv[1], sys.argv[3]))

"""One tenant floods: how late the others start, beside the same minutes without the flood, on one node.

``python bench/developer/flood.py [--url postgresql://…] [--seconds 10] [--flood 10000] [--cap 2]`` prints both and their ratio. The runs do
nothing but hold their slot for a while; claim, tick and commit are the real ones.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from lodger.engine import Engine
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.effects.finished import Finished
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.queue.ready_queue import refresh
from lodger.engine.store.schema.scheduling import actions
from lodger.sandbox.outcome import Outcome

#: How long a run holds its slot, seconds.
RUN_S = 0.005
DONE = Finished(Outcome.OK, result="null")


class Holding:
    """An executor of runs that only wait."""

    async def start(self) -> None:
        """Nothing is to be made ready."""

    async def stop(self) -> None:
        """Nothing is held."""

    async def execute(self, _claim: Claim) -> Finished:
        """Hold the slot."""
        await asyncio.sleep(RUN_S)
        return DONE


def fill(engine: Engine, tenant: str, number: int) -> None:
    """Let that many actions of a tenant wait."""
    context = engine.context
    now = context.clock.now_us()
    script = engine.inner.scripts.get(tenant, "job")
    fixed = {"tenant_id": tenant, "origin": "once", "slot": now, "due_at": now, "state": "ready", "script_version": 1}
    rows = [fixed | {"id": context.ids.new(), "script_id": script.script_id} for _ in range(number)]
    for start in range(0, number, 500):
        # As requests come: no transaction of a thousand rows that everybody waits for.
        with context.database.write() as connection:
            insert_many(connection, actions, rows[start : start + 500])
    with context.database.write() as connection:
        refresh(connection, [tenant])


async def measure(
    url: str, seconds: float, flood: int, *, tenants: int = 20, cap: int = 2, slots: int = 8
) -> list[float]:
    """Return the lateness of each start of the quiet tenants, milliseconds, ascending."""
    settings = Settings(slots=slots, min_interval_s=1, sqlite_synchronous="NORMAL")
    late: list[float] = []

    def on_event(event: Event) -> None:
        if event.kind == "started" and event.tenant_id != "flood" and event.details["origin"] == "slot":
            late.append(event.details["lateness_ms"])

    async with Engine.open(url, settings=settings) as engine:
        await engine.tenants.create("flood", limits={"concurrent_runs": cap})
        await engine.scripts.put("flood", "job", "export default () => null", force=True)
        for number in range(tenants):
            tenant = f"quiet{number}"
            await engine.tenants.create(tenant)
            await engine.scripts.put(tenant, "job", "export default () => null", force=True)
        async with engine.node(Holding()):
            for number in range(tenants):
                await engine.schedules.create(f"quiet{number}", "s", script="job", rules="every 1s")
                # Spread over the second, as schedules of unrelated tenants are.
                await asyncio.sleep(1 / tenants)
            if flood:
                await asyncio.to_thread(fill, engine, "flood", flood)
                engine.inner.changed()
            await asyncio.sleep(1)
            engine.on_event(on_event)
            await asyncio.sleep(seconds)
            if flood:
                left = await engine.actions.list("flood", state="ready", limit=1)
                assert left, "the flood was over before the end: give more"
    return sorted(late)


def at(late: list[float], share: float) -> float:
    """Return the lateness that this share of the starts did not exceed."""
    return late[min(len(late) - 1, int(len(late) * share))]


def main() -> None:
    """Measure without and with the flood, twice each in turns, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--url", action="append", default=None, help="an empty database for each measure; SQLite when left out"
    )
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--flood", type=int, default=10_000)
    parser.add_argument("--cap", type=int, default=2, help="concurrent_runs of the tenant that floods")
    given = parser.parse_args()
    both: dict[str, list[float]] = {"quiet": [], "flood": []}
    with tempfile.TemporaryDirectory() as folder:
        for number, kind in enumerate(("quiet", "flood", "quiet", "flood")):
            url = given.url[number] if given.url else str(Path(folder) / f"{number}.db")
            flood = given.flood if kind == "flood" else 0
            both[kind] += asyncio.run(measure(url, given.seconds, flood, cap=given.cap))
    for kind, late in both.items():
        late.sort()
        print(
            f"{kind}: {len(late)} starts, p50 {at(late, 0.5):.1f} ms, p99 {at(late, 0.99):.1f} ms, last {late[-1]:.1f} ms"
        )
    print(f"p99 with the flood is {at(both['flood'], 0.99) / at(both['quiet'], 0.99):.2f} times that without")


if __name__ == "__main__":
    main()

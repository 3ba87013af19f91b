"""A platform in thirty lines: its own table, one tenant, one script, the engine inside its own process."""

import asyncio
import tempfile
from pathlib import Path

from sqlalchemy import Column, Integer, MetaData, String, Table, insert

from lodger.engine import Engine
from lodger.engine.data.datasets import Datasets
from lodger.engine.data.reads import ThreadReads
from lodger.engine.node.sandbox_executor import SandboxExecutor, effects_applier
from lodger.sandbox import Pool
from lodger.sandbox.runtimes.artefact import ensure

lamps = Table(
    "lamps",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("house", String, nullable=False),
    Column("lit", Integer, nullable=False),
)
SCRIPT = """
export default async function ({ db }) {
  const dark = await db.lamps.find({ lit: 0 }, { limit: 10 });
  for (const lamp of dark) await db.lamps.update(lamp.id, { lit: 1 });
  return { lit: dark.length };
}
"""


async def main(folder: Path) -> None:
    """Light the lamps of one house every second, and stop after the first time."""
    async with Engine.open(str(folder / "ledger.db")) as engine:
        with engine.books.database.write() as connection:
            lamps.metadata.create_all(connection)
            rows = [{"house": house, "lit": 0} for house in ("oak", "oak", "elm")]
            connection.execute(insert(lamps), rows)
        await engine.tenants.create("oak", limits={"min_interval_s": 1})
        await engine.scripts.put("oak", "light", SCRIPT)
        schedule = await engine.schedules.create("oak", "evening", script="light", rules="every 1s")
        print(schedule.text)  # noqa: T201 - an example talks

        datasets = Datasets()
        datasets.expose(lamps, tenant_column="house", write=["lit"], insert=False, delete=False)
        books = engine.books
        reads = ThreadReads(books.database, elapsed_s=books.clock.elapsed_s)
        executor = SandboxExecutor(Pool(settings=ensure().settings()), reads, datasets, books.clock)
        events = engine.events()
        async with engine.node(executor, apply_effects=effects_applier(books.clock)):
            async for event in events:
                if event.kind == "finished":
                    print(event.details["outcome"], event.details["finished"].result)  # noqa: T201 - an example talks
                    break
        await events.aclose()
        reads.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(main(Path(place)))

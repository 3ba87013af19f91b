"""A platform in fifty lines: its own table, one tenant, one script, the engine inside its own process."""

import asyncio
import tempfile
from pathlib import Path

from sqlalchemy import Column, Integer, MetaData, String, Table, insert

from lodger.engine import Engine

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
        with engine.context.database.write() as connection:
            lamps.metadata.create_all(connection)
            rows = [{"house": house, "lit": 0} for house in ("oak", "oak", "elm")]
            connection.execute(insert(lamps), rows)
        await engine.tenants.create("oak", limits={"min_interval_s": 1}, grants=["sets:write:lamps"])
        await engine.scripts.put("oak", "light", SCRIPT)
        schedule = await engine.schedules.create("oak", "evening", script="light", rules="every 1s")
        print(schedule.text)  # noqa: T201 - an example talks

        engine.expose(lamps, tenant_column="house", write=["lit"], insert=False, delete=False)
        events = engine.events()
        async with engine.node():
            async for event in events:
                if event.kind == "finished":
                    print(event.details["outcome"], event.details["finished"].result)  # noqa: T201 - an example talks
                    break
        await events.aclose()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(main(Path(place)))

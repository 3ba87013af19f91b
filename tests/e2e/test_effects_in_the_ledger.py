"""A script's effects, its outcome and its mail stand in one transaction of the ledger; a conflict runs it again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from tests.unit.data.shop import customers, orders, platform

from lodger.engine import Engine, sync
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim, Finished
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.reads import ThreadReads
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.store.schema.script_data import outbox
from lodger.sandbox.pool import Pool

SCRIPT = """
export default async ({ db, mail }) => {
  const order = await db.orders.get(1);
  await db.orders.update(1, { note: order.state });
  await mail.send({ to: "a@one.example", subject: order.state, text: "t" });
  return order.state;
}
"""
REFUSED = """
export default async ({ db, mail }) => {
  await mail.send({ to: "a@one.example", subject: "never", text: "t" });
  await db.orders.increment(1, { items: -100 });
}
"""


class Meddled(SandboxExecutor):
    """Between the first attempt's end and its commit, another writer changes what it read."""

    database: Any = None
    runs = 0

    async def execute(self, claim: Claim) -> Finished:
        finished = await super().execute(claim)
        self.runs += 1
        if self.runs == 1 and self.database is not None:
            with self.database.write() as connection:
                connection.execute(sa.update(orders).values(state="changed"))
        return finished


def play(path: Path, source: str, *, meddle: bool) -> tuple[list[Event], list[Any], list[Any], int]:
    """Run one action to its end; give the events, the orders, the outbox and the number of attempts."""

    async def go() -> tuple[list[Event], list[Any], list[Any], int]:
        clock, datasets = SystemClock(), Datasets()
        datasets.expose(orders, tenant_column="org_id", read=["id", "state", "note", "items"], write=["note", "items"])
        async with Engine.open(str(path)) as engine:
            database = engine.context.database
            with database.write() as connection:
                platform.create_all(connection, tables=[customers, orders])
                connection.execute(orders.insert().values(id=1, org_id="one", state="open", items=1))
            reads = ThreadReads(database, elapsed_s=clock.elapsed_s)
            pool = Pool(size=1, cores=1, profile="trusted")
            executor = Meddled(pool, reads, datasets, clock)
            executor.database = database if meddle else None
            reported: asyncio.Queue[Event] = asyncio.Queue()
            loop = asyncio.get_running_loop()
            engine.on_event(lambda event: loop.call_soon_threadsafe(reported.put_nowait, event))
            await engine.tenants.create("one", grants=["sets:write"], people=["*@one.example"])
            await engine.scripts.put("one", "s", source)
            events: list[Event] = []
            async with engine.node(executor):
                await engine.run_in("one", "s", 0)
                while True:
                    event = await asyncio.wait_for(reported.get(), 120)
                    events.append(event)
                    if event.kind == "finished" and event.details["state"] in ("done", "failed"):
                        break
            with database.read() as connection:
                rows = list(connection.execute(sa.select(orders.c.state, orders.c.note, orders.c["items"])))
                mails = [json.loads(row.payload) for row in connection.execute(sa.select(outbox))]
            reads.close()
            return events, rows, mails, executor.runs

    return asyncio.run(go())


def test_effects_and_outcome_are_stored_together(tmp_path: Path) -> None:
    events, rows, mails, runs = play(tmp_path / "l.db", SCRIPT, meddle=False)
    assert events[-1].details["outcome"] == "ok"
    assert (rows, [mail["subject"] for mail in mails], runs) == ([("open", "open", 1)], ["open"], 1)


def test_a_conflict_runs_again_on_what_is_there_now(tmp_path: Path) -> None:
    events, rows, mails, runs = play(tmp_path / "l.db", SCRIPT, meddle=True)
    assert [event.details["outcome"] for event in events if event.kind == "finished"] == ["conflict", "ok"]
    assert (rows, [mail["subject"] for mail in mails], runs) == ([("changed", "changed", 1)], ["changed"], 2)


def test_a_refused_effect_leaves_nothing_and_names_its_line(tmp_path: Path) -> None:
    events, rows, mails, runs = play(tmp_path / "l.db", REFUSED, meddle=False)
    assert events[-1].details["outcome"] == "effect_refused"
    assert (rows, mails, runs) == ([("open", None, 1)], [], 1)
    with sync.Engine.open(str(tmp_path / "l.db")) as engine:
        (action,) = engine.actions.list("one")
        assert action.error is not None
        assert "main.js" in str(action.error)
        assert "4" in str(action.error)

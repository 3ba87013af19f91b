"""A disk without room while slots come due and runs end: said in words, nothing is lost or done twice, and it goes on by itself."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.node.harness import SETTINGS, Script, Signals
from tests.node.small_disk import fill, small
from tests.traces import TABLE, Traces, seen

from lodger.engine import Engine
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.node.node import Node
from lodger.sandbox.outcome import Outcome

__all__ = ["small"]


@asynccontextmanager
async def working(folder: Path, script: Script) -> AsyncIterator[tuple[Engine, Node, Signals]]:
    """An engine with a node at work; each run leaves a trace."""
    place = str(folder / "ledger.db")
    async with Engine.open(place, settings=SETTINGS) as engine:
        await engine.tenants.create("acme")
        await engine.scripts.put("acme", "job", "export default () => 1")
        signals = Signals(engine)
        async with engine.node(script, "n1") as node:
            yield engine, node, signals


async def test_slots_that_come_due_and_runs_that_end_on_a_full_disk_are_not_lost(small: Path) -> None:
    go_on = asyncio.Event()

    class Waiting(Script):
        traces: Traces

        async def execute(self, claim: Claim) -> Finished:
            await go_on.wait()
            # More than lies ready in the file's log of changes.
            trace = self.traces.journal(claim, secrets.token_hex(3_000_000))
            return Finished(Outcome.OK, result='"' + "y" * 50_000 + '"', journal=trace)

    script = Waiting()
    async with working(small, script) as (engine, _node, signals):
        database = engine.context.database
        with database.write() as connection:
            TABLE.create(connection)
        script.traces = Traces(engine.datasets)
        await engine.schedules.create("acme", "s", script="job", rules="every 1s", overlap="allow", missed="all")
        await signals.wait("started")
        filler = fill(small)
        go_on.set()

        async def has_faults() -> bool:
            faults = [each.details for each in signals.events if each.kind == "fault"]
            return {"due-clocks", "ends"} <= {each["service"] for each in faults}

        await signals.until(has_faults)
        filler.unlink()
        errors = [each.details["error"] for each in signals.events if each.kind == "fault"]
        assert {each.code if isinstance(each, Unavailable) else each for each in errors} == {"disk_full"}
        await signals.wait("finished", 2)
        await engine.schedules.pause("acme", "s")

        async def rests() -> bool:
            return all(each.finished_at or each.slot_to for each in await engine.actions.list("acme"))

        await signals.until(rests)
        rows = sorted(await engine.actions.list("acme"), key=lambda each: each.slot)
        with database.read() as connection:
            traces = [action_id for action_id, _step, _tries in seen(connection)]
    slots = [int(each.slot.timestamp()) for each in rows]
    assert slots == list(range(slots[0], slots[0] + len(slots))), "each slot has its row"
    assert sorted(traces) == sorted(row.id for row in rows if row.state == "done"), "once"
    assert len(traces) >= 2

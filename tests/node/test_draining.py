"""A node that stops claims nothing more and lets what runs end. On a real node."""

import asyncio
from pathlib import Path

from tests.node.harness import OK, SETTINGS, Script, working

from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished


class Held(Script):
    """Ends when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def execute(self, claim: Claim) -> Finished:
        self.seen.append(claim)
        await self.go.wait()
        return OK


async def test_what_runs_ends_while_the_node_stops_and_nothing_new_begins(tmp_path: Path) -> None:
    script = Held()
    settings = SETTINGS.model_copy(update={"drain_s": 600.0})
    async with working(tmp_path, script, settings) as (engine, node, signals):
        asked = await engine.run_in("acme", "job", 0)
        await signals.wait("started")
        stop = asyncio.create_task(node.stop())
        await node.loop.drain()
        late = await engine.run_in("acme", "job", 0)
        # Without waiting for what runs the stop would be over by then.
        assert not (await asyncio.wait([stop], timeout=0.5))[0]
        script.go.set()
        await stop
        assert (await engine.actions.get(None, asked.id)).state == "done"
        assert len(await engine.actions.attempts(None, asked.id)) == 1, "it was neither killed nor handed back"
        assert (await engine.actions.get(None, late.id)).state == "ready"

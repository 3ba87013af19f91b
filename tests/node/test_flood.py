"""One tenant floods a node: another's slot is started before more than a node's slots of the flood's are.

Counted in starts, not in time, so that a busy machine changes nothing; ``bench/developer/flood.py`` measures how late they are.
"""

import asyncio
from pathlib import Path

from tests.node.harness import OK, SETTINGS, Script, working

from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.queue.ready_queue import refresh
from lodger.engine.store.schema.scheduling import actions

SLOTS = 4
#: Far more than run while the others' slots come due.
FLOOD = 10_000


class Holding(Script):
    """Each run holds its slot for a moment."""

    async def execute(self, claim: Claim) -> Finished:
        self.seen.append(claim)
        await asyncio.sleep(0.005)
        return OK


def test_a_flood_of_one_tenant_lets_the_others_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        script, settings = Holding(), SETTINGS.model_copy(update={"slots": SLOTS, "concurrent_runs": 1000})
        async with working(tmp_path, script, settings) as (engine, _node, signals):
            # By name and by age the flood would be first.
            await engine.tenants.create("a-flood")
            stored = await engine.scripts.put("a-flood", "job", "export default () => 1")
            store = engine.context
            now = store.clock.now_us()
            row = {"tenant_id": "a-flood", "origin": "once", "slot": now, "due_at": now, "state": "ready"}
            row |= {"script_id": stored.script_id, "script_version": 1}
            with store.database.write() as connection:
                insert_many(connection, actions, [row | {"id": store.ids.new()} for _ in range(FLOOD)])
                refresh(connection, ["a-flood"])
            engine.inner.changed()
            for number in range(3):
                tenant = f"quiet{number}"
                await engine.tenants.create(tenant)
                await engine.scripts.put(tenant, "job", "export default () => 1")
                await engine.schedules.create(tenant, "s", script="job", rules="every 1s")

            async def enough() -> bool:
                return sum(claim.tenant_id != "a-flood" for claim in script.seen) >= 6

            await signals.until(enough)
            assert await engine.actions.list("a-flood", state="ready", limit=1), "the flood goes on"
            ahead: dict[str, int] = {}
            behind = []
            for event in signals.events:
                if event.kind == "ticked" and event.action_id is not None:
                    ahead[event.action_id] = 0
                elif event.kind == "started" and event.tenant_id == "a-flood":
                    ahead = {action: number + 1 for action, number in ahead.items()}
                elif event.kind == "started" and event.action_id in ahead:
                    behind.append(ahead.pop(event.action_id))
            assert len(behind) >= 6
            # What was being claimed when it came due, and what the slots held.
            assert max(behind) <= 2 * SLOTS, behind

    asyncio.run(scenario())

"""A lease that is lost while a claim is on its way: nothing begins under it, and what was claimed runs under the next one."""

from pathlib import Path

from tests.node.harness import Script, working

from lodger.engine.core.execution import Claim
from lodger.engine.node.node_events import Claimed


async def test_nothing_begins_under_a_lease_that_was_lost_meanwhile(tmp_path: Path) -> None:
    script = Script()
    async with working(tmp_path, script) as (engine, node, signals):
        lost: list[Claim] = []

        def lose(event: Claimed) -> None:
            if event.claims and not lost:
                lost.extend(event.claims)
                node.context.surrender("the answer came late")

        node.context.bus.subscribe(Claimed, lose)
        asked = await engine.run_in("acme", "job", 0)
        (done,) = await signals.wait("finished")
        assert done.action_id == asked.id
        assert all(each.lease_epoch > lost[0].lease_epoch for each in script.seen)
        assert (await engine.actions.get(None, asked.id)).state == "done"

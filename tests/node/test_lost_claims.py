"""A lease that is lost while a claim is on its way: nothing begins under it, and what was claimed runs under the next one."""

import asyncio
from pathlib import Path

import pytest
from tests.node.harness import Script, working

from lodger.engine.core.execution import Claim
from lodger.engine.node.services.dispatcher import Dispatcher
from lodger.engine.node.services.lease_keeper import surrender
from lodger.engine.policy.placement import Room
from lodger.engine.store.lifecycle.claims import Lease


def test_nothing_begins_under_a_lease_that_was_lost_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, lost = Dispatcher.claim, []

    async def late(dispatcher: Dispatcher, lease: Lease, room: Room) -> list[Claim]:
        claimed = await claim(dispatcher, lease, room)
        if claimed and not lost:
            lost.extend(claimed)
            surrender(dispatcher.context, "the answer came late")
        return claimed

    async def scenario() -> None:
        script = Script()
        async with working(tmp_path, script) as (engine, _node, signals):
            monkeypatch.setattr(Dispatcher, "claim", late)
            asked = await engine.run_in("acme", "job", 0)
            (done,) = await signals.wait("finished")
            assert done.action_id == asked.id
            assert all(each.lease_epoch > lost[0].lease_epoch for each in script.seen)
            assert (await engine.actions.get(None, asked.id)).state == "done"

    asyncio.run(scenario())

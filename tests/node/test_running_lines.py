"""What a script says is heard while it runs, in any process, each line once and in order, without its secrets."""

import asyncio
import json
import threading
from pathlib import Path

from sqlalchemy import func, select
from tests.node.harness import SETTINGS, Signals

from lodger.engine import Engine
from lodger.engine.store.records import Action
from lodger.engine.store.schema.access import running_lines
from lodger.engine.sync import Engine as Sync
from lodger.sandbox.job import LogLine

VALUE = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
#: Says something, and goes on until it is ended.
SAYS = """
export default async ({ secrets }) => {
  console.log("one " + await secrets.read("KEY"));
  console.warn("two");
  for (;;) await new Promise((later) => setTimeout(later, 1000));
};
"""


async def test_lines_are_heard_while_their_attempt_runs_and_once(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.db")
    settings = SETTINGS.model_copy(update={"secret_keys": tmp_path / "keys"})
    first, received, states = threading.Event(), list[LogLine](), list[str]()

    def follow(action_id: str) -> None:
        # As another process does, with nothing but the ledger.
        with Sync.open(place, settings=settings) as elsewhere:
            for each in elsewhere.live("acme", action_id):
                if isinstance(each, Action):
                    states.append(each.state)
                    continue
                received.append(each)
                if each.text == "two":
                    stored = [line.text for line in elsewhere.actions.logs("acme", action_id)]
                    assert stored == [line.text for line in received]
                    states.append("heard")
                    first.set()

    async with Engine.open(place, settings=settings) as engine:
        engine.inner.secrets.vault.keyring.add()
        await engine.tenants.create("acme", limits={"wall_ms": 300_000}, grants=["secret:KEY:plain"])
        await engine.secrets.put("acme", "KEY", VALUE)
        await engine.scripts.put("acme", "says", SAYS)
        signals = Signals(engine)
        async with engine.node():
            asked = await engine.run_in("acme", "says", 0)
            following = asyncio.create_task(asyncio.to_thread(follow, asked.id))
            await asyncio.wait(
                {asyncio.create_task(asyncio.to_thread(first.wait, 120)), following}, return_when="FIRST_COMPLETED"
            )
            assert first.is_set(), following.result()
            assert not [event for event in signals.events if event.kind == "finished"]
            await engine.actions.cancel(None, asked.id)
            await asyncio.wait_for(following, 120)
            await signals.wait("killed")
            assert [line.text for line in received] == ["one [secret KEY]", "two"]
            assert [line.level for line in received] == ["info", "warn"]
            assert list(await engine.actions.logs("acme", asked.id)) == received
            assert states.index("heard") < states.index("cancelled")

            async def forgotten() -> bool:
                with engine.context.database.read() as connection:
                    return connection.scalar(select(func.count()).select_from(running_lines)) == 0

            await signals.until(forgotten)

    assert VALUE not in json.dumps([line.text for line in received])

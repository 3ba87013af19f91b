"""The heartbeat of a real node."""

import asyncio
from pathlib import Path

import pytest
from tests.egress.peer import Peer, opened, thread_of_peers
from tests.node.harness import SETTINGS, Script, Signals

from lodger.engine import Engine
from lodger.engine.node.services import heartbeat


@pytest.fixture(autouse=True)
def quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.05)


async def test_the_heartbeat_is_sent_while_the_node_holds_its_lease(tmp_path: Path) -> None:
    peer = Peer()

    with thread_of_peers(peer):
        settings = opened(peer, **SETTINGS.model_dump(exclude_defaults=True), heartbeat_url=peer.url("/alive"))
        async with Engine.open(str(tmp_path / "ledger.db"), settings=settings) as engine:
            signals = Signals(engine)
            async with engine.node(Script(), "n1") as node:
                await signals.until(lambda: asyncio.sleep(0, len(peer.asked) >= 2))
                await node.lease_keeper.stop()
                node.identity.lease = None
                (heart,) = [each for each in node.services if isinstance(each, heartbeat.Heartbeat)]
                await heart.stop()
                sent = len(peer.asked)
                await heart.round()
                assert len(peer.asked) == sent
        assert {each.line for each in peer.asked} == {"GET /alive HTTP/1.1"}


async def test_a_heartbeat_that_cannot_be_sent_is_a_fault_and_tried_again(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"heartbeat_url": "http://127.0.0.1:9/"})
    async with Engine.open(str(tmp_path / "ledger.db"), settings=settings) as engine:
        signals = Signals(engine)
        async with engine.node(Script(), "n1"):
            (first, *_more) = await signals.wait("fault", 2)
        assert first.details["service"] == "heartbeat"

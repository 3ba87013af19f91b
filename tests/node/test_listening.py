"""A node hears what other processes changed, on a connection of its own; without it, it looks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from tests.databases.fixtures import name, server
from tests.databases.fixtures import server_url as url
from tests.node.harness import SETTINGS, Script, Signals

from lodger.engine import Engine
from lodger.engine.node.node import Node
from lodger.engine.node.services.listener import Listener
from lodger.engine.store.connection.notify import CHANNEL, Hints
from lodger.engine.sync import Engine as SyncEngine

__all__ = ["name", "server", "url"]
#: Looking alone would find nothing within a test.
NEVER_S = 60.0


def listener(node: Node) -> Listener:
    (found,) = [service for service in node.services if isinstance(service, Listener)]
    return found


@asynccontextmanager
async def working(url: str, **more: Any) -> AsyncIterator[tuple[SyncEngine, Node, Signals]]:
    """A node that looks once a minute, and an engine of another process: it shares nothing with the node's."""
    settings = SETTINGS.model_copy(update={"poll_s": NEVER_S, "lease_s": 300.0} | more)
    with SyncEngine.open(url, settings=SETTINGS) as other:
        other.tenants.create("acme")
        other.scripts.put("acme", "job", "export default () => 1")
        async with Engine.open(url, settings=settings) as engine:
            signals = Signals(engine)
            async with engine.node(Script(), "n1") as node:
                yield other, node, signals


async def test_what_another_process_asks_for_starts_at_once(url: str) -> None:
    async with working(url) as (other, node, signals):
        await asyncio.wait_for(listener(node).listening.wait(), 120)
        for number in range(1, 4):
            await asyncio.to_thread(other.run_in, "acme", "job", 0)
            await signals.wait("finished", number)
        await asyncio.to_thread(other.schedules.create, "acme", "s", script="job", rules="every 1s")
        await signals.wait("ticked")


async def test_what_is_changed_right_after_a_hint_is_found_as_well(url: str) -> None:
    """Of two changes within the window only the first is told."""

    async with working(url) as (other, node, signals):
        await asyncio.wait_for(listener(node).listening.wait(), 120)

        def both() -> None:
            other.context.database.hints.send = lambda *_: None  # type: ignore[method-assign]  # as within the window
            with other.context.database.write() as connection:
                Hints().send(connection, 0.0)
            other.run_in("acme", "job", 0)

        await asyncio.to_thread(both)
        await signals.wait("finished")


async def test_a_connection_that_is_cut_is_made_anew(url: str) -> None:
    async with working(url) as (other, node, signals):
        hearing = listener(node)
        for number in (1, 2):
            await asyncio.wait_for(hearing.listening.wait(), 120)
            await asyncio.to_thread(other.run_in, "acme", "job", 0)
            await signals.wait("finished", number)
            hearing.listening.clear()
            if number == 1:
                cut = sa.text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' "
                    "AND datname = current_database()"
                )
                with other.context.database.write() as connection:
                    assert connection.execute(cut).all()


@pytest.mark.parametrize("listen_url", ["off", "postgresql://nobody@/nowhere?host=/nowhere"])
async def test_without_it_a_node_looks(url: str, listen_url: str) -> None:
    async with working(url, poll_s=0.05, listen_url=listen_url) as (other, node, signals):
        assert any(isinstance(service, Listener) for service in node.services) == (listen_url != "off")
        await asyncio.to_thread(other.run_in, "acme", "job", 0)
        await signals.wait("finished")
        assert not [event for event in signals.events if event.kind == "fault"]


def test_a_hint_is_sent_once_in_a_while_with_its_transaction(url: str) -> None:
    with SyncEngine.open(url) as engine:
        hints = Hints()
        hearing = engine.context.database.engine.raw_connection()
        try:
            driver = hearing.driver_connection
            assert driver is not None
            driver.autocommit = True
            driver.execute(f"LISTEN {CHANNEL}")
            with engine.context.database.write() as connection:
                hints.send(connection, 1.0)
                assert list(driver.notifies(timeout=0.05)) == [], "not before it is committed"
            with engine.context.database.write() as connection:
                hints.send(connection, 1.01)
            with engine.context.database.write() as connection:
                hints.send(connection, 1.5)
            assert len(list(driver.notifies(timeout=60, stop_after=2))) == 2
            assert list(driver.notifies(timeout=0.2)) == [], "one of three was too soon after another"
        finally:
            hearing.invalidate()

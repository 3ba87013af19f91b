"""A node on a machine with a wrong clock: a small offset is corrected; with a large one it claims nothing and reports it."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.databases.fixtures import kind, url
from tests.node.harness import SETTINGS, Script

from lodger.engine.core.clock import SystemClock, from_us
from lodger.engine.node.context import ServerClock
from lodger.engine.node.node import Node
from lodger.engine.sync import Engine

__all__ = ["kind", "url"]


class Shifted(SystemClock):
    """The machine's clock, so many seconds off."""

    def __init__(self, seconds: float) -> None:
        self.us = int(seconds * 1e6)

    def now_us(self) -> int:
        return super().now_us() + self.us


@pytest.fixture
def engine(url: str, kind: str) -> Iterator[Engine]:
    if kind == "sqlite":
        pytest.skip("SQLite's time is this machine's")
    with Engine.open(url, settings=SETTINGS) as engine:
        engine.tenants.create("acme", limits={"concurrent_runs": 5})
        engine.scripts.put("acme", "job", "export default () => 1")
        yield engine


async def off(engine: Engine, seconds: float) -> tuple[int, list[str], list[str]]:
    """Return the node's offset from the true time (µs), the kinds of its events, and what it claims."""
    engine.context = replace(engine.context, clock=Shifted(seconds))
    kinds: list[str] = []
    engine.on_event(lambda event: kinds.append(event.kind))
    node = Node(engine.host, Script(hang=True), "n1")
    await node.prepare()
    try:
        engine.run_at("acme", "job", from_us(SystemClock().now_us()))
        assert node.lease is not None
        await node.loop.round()
        return (
            node.clock.now_us() - SystemClock().now_us(),
            kinds,
            [action.id for action in engine.actions.list(state="running")],
        )
    finally:
        await node.stop()


def test_a_little_is_put_right_and_the_node_works(engine: Engine) -> None:
    gap, kinds, claimed = asyncio.run(off(engine, -1.5))
    assert abs(gap) < 1_000_000
    assert "clock_wrong" not in kinds
    assert claimed


@pytest.mark.parametrize("seconds", [-60, 60])
def test_too_much_and_it_claims_nothing_and_says_so(engine: Engine, seconds: int) -> None:
    gap, kinds, claimed = asyncio.run(off(engine, seconds))
    assert abs(gap) < 1_000_000
    assert "clock_wrong" in kinds
    assert not claimed


def test_what_lies_within_the_doubt_of_the_measurement_is_no_offset() -> None:
    clock = ServerClock(SystemClock(), 15_000_000)
    clock.set_offset(1_000_400, 1_000_000, 1_001_000)
    assert clock.offset_us == 0
    clock.set_offset(1_500_500, 1_000_000, 1_001_000)
    assert clock.offset_us == 500_000


def test_a_step_of_the_servers_clock_is_not_followed_until_it_is_over() -> None:
    clock = ServerClock(SystemClock(), 15_000_000)
    clock.set_offset(1_500_500, 1_000_000, 1_001_000)
    clock.set_offset(315_360_001_500_500, 1_000_000, 1_001_000)
    assert (clock.offset_us, clock.stepped_us) == (500_000, 315_360_000_000_000 - 500_000 + 500_000)
    assert clock.stepped == "the database server's clock"
    clock.set_offset(1_500_500, 1_000_000, 1_001_000)
    assert (clock.offset_us, clock.stepped_us) == (500_000, 0)

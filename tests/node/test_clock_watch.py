"""A clock that is set far away while a node runs, or a ledger that was written in the future: the node is held, and says why."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.databases.fixtures import kind, url
from tests.node.harness import SETTINGS, Script

from lodger.engine.core.clock import SteadyClock, SystemClock, from_us
from lodger.engine.core.events import Event
from lodger.engine.node.node import Node
from lodger.engine.store.lifecycle import wrong_clock
from lodger.engine.sync import Engine

__all__ = ["kind", "url"]
TEN_YEARS_US = 10 * 366 * 86_400 * 1_000_000


class Settable(SystemClock):
    """The machine's clock, which can be set."""

    shift_us = 0

    def now_us(self) -> int:
        return super().now_us() + self.shift_us


@pytest.fixture
def machine() -> Settable:
    return Settable()


@pytest.fixture
def engine(url: str, machine: Settable) -> Iterator[Engine]:
    with Engine.open(url, settings=SETTINGS) as engine:
        engine.context = replace(engine.context, clock=SteadyClock(machine, SETTINGS.lease_s))
        engine.tenants.create("acme", limits={"concurrent_runs": 5, "min_interval_s": 1})
        engine.scripts.put("acme", "job", "export default () => 1")
        yield engine


async def test_a_held_node_plans_and_starts_nothing_and_goes_on_when_the_clock_is_right(
    engine: Engine, machine: Settable
) -> None:
    events: list[Event] = []
    engine.on_event(events.append)

    node = Node(engine.host, Script(hang=True), "n1")
    await node.prepare()
    try:
        machine.shift_us = TEN_YEARS_US
        await node.clock_watch.round()
        engine.schedules.create("acme", "s", script="job", rules="every 1h")
        engine.run_at("acme", "job", from_us(SystemClock().now_us()))
        await node.loop.round()
        assert not engine.actions.list(state="running")
        assert any("was set 3660 days" in problem for problem in node.problems()), node.problems()
        next_at = engine.schedules.get("acme", "s").next_at
        assert next_at is not None
        assert next_at.year < 2030, "the engine does not follow the step either"
        machine.shift_us = 0
        await node.clock_watch.round()
        assert not any("was set" in problem for problem in node.problems())
        await node.loop.round()
        assert len(engine.actions.list(state="running")) == 1
    finally:
        await node.stop()

    told = [event.details for event in events if event.kind == "clock_wrong"]
    assert [each["held"] for each in told] == [True, False]
    assert "start the node again" in str(told[0]["reason"])


def test_a_ledger_that_was_written_in_the_future_holds_a_new_node_until_it_is_brought_back(
    engine: Engine, machine: Settable
) -> None:
    engine.schedules.create("acme", "s", script="job", rules="every 1h")

    async def wrong() -> None:
        machine.shift_us = TEN_YEARS_US
        engine.context = replace(engine.context, clock=SteadyClock(machine, SETTINGS.lease_s), database_time=False)
        node = Node(engine.host, Script(), "n1")
        await node.prepare()
        await node.loop.round()
        await node.stop()

    async def right() -> None:
        machine.shift_us = 0
        engine.context = replace(engine.context, clock=SteadyClock(machine, SETTINGS.lease_s), database_time=False)
        node = Node(engine.host, Script(), "n1")
        await node.prepare()
        try:
            (problem,) = node.problems()
            assert "lodger db repair-clock --yes" in problem
            with engine.context.database.write() as connection:
                wrong_clock.bring_back(engine.context, connection, machine.now_us())
            await node.clock_watch.round()
            assert node.problems() == []
        finally:
            await node.stop()

    asyncio.run(wrong())
    asyncio.run(right())
    next_at = engine.schedules.get("acme", "s").next_at
    assert next_at is not None
    assert next_at.year < 2030

"""Services alone: one of them, a real store and a bus. No node, and nothing that stands in for one."""

import asyncio
from pathlib import Path
from typing import TypeVar

from sqlalchemy import select, update
from tests.databases.fixtures import name, server
from tests.databases.fixtures import server_url as url
from tests.node.alone import Hanging, bench, looping
from tests.node.harness import OK, SETTINGS

from lodger.engine.core.clock import from_us
from lodger.engine.core.events import Fault, LeaseLost, LeaseRenewed, LedgerChanged
from lodger.engine.core.handlers import Handlers
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.node.ledger_loop.due_clocks import PASSED_BY_S
from lodger.engine.node.node_events import (
    AttemptFinished,
    BatchCommitted,
    Ticked,
)
from lodger.engine.node.service import Service
from lodger.engine.node.services.lease_keeper import LeaseKeeper
from lodger.engine.node.services.lease_watchdog import LeaseWatchdog
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.schema.scheduling import schedule_clock
from lodger.engine.testing.clock import FakeClock

__all__ = ["name", "server", "url"]
E = TypeVar("E")


async def test_due_clocks_become_actions_even_without_a_lease(tmp_path: Path) -> None:
    async with bench(tmp_path) as alone, looping(alone, Hanging()) as (loop, _attempts):
        ticked = alone.heard(Ticked)
        assert await loop.round() > 0, "nothing is due"
        assert not ticked
        owed = from_us(alone.context.clock.now_us() - 900_000_000)
        await alone.engine.schedules.create("acme", "s", script="job", rules="every 900s", first_after=owed)
        alone.bus.publish(LedgerChanged())
        await loop.round()
        assert [len(each.schedules) for each in ticked] == [1]
        assert loop.behind_s is None, "one batch took all that was due"
        assert [each.state for each in await alone.engine.actions.list("acme")] == ["ready"]


async def test_the_loop_comes_back_soon_for_a_clock_of_a_locked_tenant(url: str) -> None:
    async with bench(url, clock=(clock := FakeClock())) as alone, looping(alone, Hanging()) as (loop, _attempts):
        ticked, engine = alone.heard(Ticked), alone.engine
        await engine.tenants.create("busy")
        await engine.scripts.put("busy", "job", "export default () => 1")
        owed = from_us(alone.context.clock.now_us() - 900_000_000)
        for tenant in ("acme", "busy"):
            await engine.schedules.create(tenant, "s", script="job", rules="every 900s", first_after=owed)
        with engine.context.database.write() as connection:
            ready_queue.lock(connection, ["busy"])
            connection.execute(select(1))  # takes the locks: an answer is waited for
            assert await loop.round() == PASSED_BY_S
            assert [each.tenant_id for each in ticked[0].schedules] == ["acme"]
        clock.move_to(clock.now_us() + int(PASSED_BY_S * 1_000_000))
        await loop.round()
        assert [each.tenant_id for each in ticked[1].schedules] == ["busy"]


async def test_a_pause_that_ends_in_a_suspended_tenant_causes_no_ticks(url: str) -> None:
    async with bench(url) as alone, looping(alone, Hanging()) as (loop, _attempts):
        engine = alone.engine
        await engine.schedules.create("acme", "s", script="job", rules="every 900s")
        await engine.schedules.pause("acme", "s", until=from_us(alone.context.clock.now_us() + 900_000_000))
        await engine.tenants.suspend("acme")
        ended = update(schedule_clock).values(wake_at=1)
        await alone.db.write(lambda connection: connection.execute(ended))
        ticked = alone.heard(Ticked)
        for _ in range(3):
            alone.bus.publish(LedgerChanged())
            await loop.round()
        assert not ticked, "no transaction for what is not due"
        await engine.tenants.resume("acme")
        alone.bus.publish(LedgerChanged())
        await loop.round()
        (row,) = await engine.schedules.list("acme")
        assert row.state == "armed"


async def test_without_a_lease_ended_attempts_are_dropped(tmp_path: Path) -> None:
    async with bench(tmp_path) as alone, looping(alone, Hanging()) as (loop, _attempts):
        committed = alone.heard(BatchCommitted)
        (claim,) = await alone.claim()
        alone.identity.lease = None
        alone.bus.publish(AttemptFinished(claim, OK))
        await loop.round()
        assert [each.committed.lost for each in committed] == [(claim,)]
        assert await alone.state(claim) == "running"


async def test_the_lease_keeper_gives_up_a_lease_that_another_node_has_taken(tmp_path: Path) -> None:
    async with bench(tmp_path) as alone:
        lost, renewed = alone.heard(LeaseLost), alone.heard(LeaseRenewed)
        keeper = LeaseKeeper(alone.context, Handlers(), Datasets())
        await keeper.round()
        first = alone.identity.lease
        assert first is not None
        await keeper.round()
        assert len(renewed) == 1
        with alone.engine.context.database.write() as connection:
            connection.execute(update(nodes).values(epoch=first.epoch + 1, state="lost"))
        await keeper.round()
        assert len(lost) == 1
        assert alone.identity.lease is None
        await keeper.round()
        assert alone.identity.lease is not None
        assert alone.identity.lease.epoch > first.epoch


async def test_the_watchdog_gives_up_a_lease_that_was_not_renewed_in_time(tmp_path: Path) -> None:
    async with bench(tmp_path) as alone:
        lost, watchdog = alone.heard(LeaseLost), LeaseWatchdog(alone.context)
        await alone.register()
        alone.identity.renewed_s = alone.context.clock.elapsed_s()
        await watchdog.round()
        assert not lost
        alone.identity.renewed_s -= SETTINGS.lease_s
        await watchdog.round()
        assert len(lost) == 1
        assert alone.identity.lease is None


async def test_a_round_that_fails_is_published_and_tried_again(tmp_path: Path) -> None:
    class Failing(Service):
        name = "failing"
        rounds = 0

        async def round(self) -> float:
            self.rounds += 1
            if self.rounds == 1:
                raise ZeroDivisionError("ours")
            done.set()
            return 3600.0

    done = asyncio.Event()

    async with bench(tmp_path) as alone:
        faults, service = alone.heard(Fault), Failing(alone.context)
        await service.start()
        await asyncio.wait_for(done.wait(), 120)
        await service.stop()
        assert [(each.service, type(each.error)) for each in faults] == [("failing", ZeroDivisionError)]

"""Before a storm what comes due is read, in its midst naming slots goes first; between storms one look serves all services."""

import asyncio
import gc
from pathlib import Path

import pytest
from sqlalchemy import update
from tests.node.alone import Hanging, bench, looping
from tests.node.harness import SETTINGS, Script, working

from lodger.engine.core.clock import from_us
from lodger.engine.core.events import LedgerChanged
from lodger.engine.node.ledger_loop import free_slots
from lodger.engine.node.node_events import Claimed, Ticked
from lodger.engine.node.services import prefetcher
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.schema.scheduling import schedule_clock
from lodger.engine.sync import Engine
from lodger.engine.testing.clock import FakeClock


async def test_what_comes_due_is_read_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetcher, "PREFETCH_S", 200_000.0)
    monkeypatch.setattr(prefetcher, "FREEZE_EACH", 50)

    async with working(tmp_path, Script()) as (engine, node, signals):
        # By another process: this one's node has compiled none of them.
        with Engine.open(str(tmp_path / "ledger.db")) as other:
            made = [other.schedules.create("acme", f"s{n}", script="job", rules="every 86400s") for n in range(60)]
        book, keys = engine.inner.context.revision_cache, [("acme", each.id, each.revision) for each in made]
        assert len(book.uncached(keys)) == 60, "nothing but a tick would read them, and none comes before midnight"
        ahead, frozen = prefetcher.Prefetcher(node.context), gc.get_freeze_count()
        await ahead.start()

        async def read() -> bool:
            return not book.uncached(keys)

        await signals.until(read)
        await ahead.stop()
        assert gc.get_freeze_count() > frozen + 60, "the collector looks through no cached revision"


async def test_during_a_backlog_claims_are_rarer_and_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tick, "TICK_BATCH", 8)
    monkeypatch.setattr(free_slots, "BACKLOG_CLAIM_SIZE", 16)
    settings = SETTINGS.model_copy(update={"slots": 64, "concurrent_runs": 64})
    async with bench(tmp_path, settings, clock := FakeClock()) as alone, looping(alone, Hanging()) as (loop, _runs):
        claimed, ticked = alone.heard(Claimed), alone.heard(Ticked)
        await alone.engine.tenants.edit("acme", limits={"concurrent_runs": 64})
        await alone.register()
        owed = from_us(clock.now_us() - 900_000_000)
        for each in range(64):
            await alone.engine.schedules.create("acme", f"s{each}", script="job", rules="every 900s", first_after=owed)
        alone.bus.publish(LedgerChanged())
        for _ in range(4):
            await loop.round()
        assert [len(each.schedules) for each in ticked] == [8] * 4
        assert [len(each.claims) for each in claimed] == [8], "with the first tick, which was not known to be full"
        clock.move_to(clock.now_us() + 50_000)
        for _ in range(2):
            await loop.round()
        assert [len(each.claims) for each in claimed] == [8, 16]


@pytest.mark.parametrize("number", [6, 7])
async def test_a_tick_that_came_back_full_says_that_more_is_due_until_nothing_is(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick, "TICK_BATCH", 2)
    async with working(tmp_path, Script()) as (engine, node, _signals):
        await node.loop.stop()
        for each in range(number):
            await engine.schedules.create("acme", f"s{each}", script="job", rules="every 900s")
        with engine.context.database.write() as connection:
            connection.execute(update(schedule_clock).values(next_at=node.clock.now_us()))
        behind = []
        for _ in range(4):
            node.context.bus.publish(LedgerChanged())
            await node.loop.round()
            behind.append(node.loop.behind_s is not None)
        assert behind == [True, True, True, False]


async def test_what_another_process_commits_is_seen_by_the_commit_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All other services sleep until they are woken."""
    monkeypatch.setattr("lodger.engine.node.context.FAR_S", 1e6)

    async with working(tmp_path, Script()) as (_engine, _node, signals):
        with Engine.open(str(tmp_path / "ledger.db"), settings=SETTINGS) as other:
            for number in range(1, 4):
                await asyncio.to_thread(other.run_in, "acme", "job", 0)
                await signals.wait("finished", number)

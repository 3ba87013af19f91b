"""Before a storm what comes due is read, in its midst naming slots goes first; between storms one look serves all services."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import update
from tests.node.harness import SETTINGS, Script, working

from lodger.engine.core.events import Backlog
from lodger.engine.core.execution import Claim, Finished
from lodger.engine.node.services import dispatcher, ticker
from lodger.engine.node.services.dispatcher import Dispatcher
from lodger.engine.policy.placement import Room
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.schema.scheduling import schedule_clock
from lodger.engine.sync import Engine


def slots_of_claims(of: Dispatcher) -> list[int]:
    """Return a list that grows with each of its own claims by the slots that are free for it."""
    found: list[int] = []
    claim = of.claim

    async def noted(lease: Lease, room: Room) -> list[Claim]:
        found.append(room.slots)
        return await claim(lease, room)

    of.claim = noted  # type: ignore[method-assign]  # and does the same
    return found


def test_what_comes_due_is_read_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticker, "PREFETCH_S", 200_000.0)

    async def scenario() -> None:
        async with working(tmp_path, Script()) as (engine, node, signals):
            # By another process: this one's node has compiled none of them.
            with Engine.open(str(tmp_path / "ledger.db")) as other:
                made = [other.schedules.create("acme", f"s{n}", script="job", rules="every 86400s") for n in range(60)]
            book, keys = engine.inner.context.revision_cache, [("acme", each.id, each.revision, 0) for each in made]
            assert len(book.uncached(keys)) == 60, "nothing but a tick would read them, and none comes before midnight"
            ahead = ticker.Prefetcher(node.context)
            await ahead.start()

            async def read() -> bool:
                return not book.uncached(keys)

            await signals.until(read)
            await ahead.stop()

    asyncio.run(scenario())


def test_claims_give_way_while_slots_are_named_but_not_for_ever(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = SETTINGS.model_copy(update={"slots": 64, "concurrent_runs": 64})
        async with working(tmp_path, Script(), settings) as (engine, node, signals):
            rooms = slots_of_claims(node.dispatcher)
            # It has just begun to be behind, and the clock does not reach the end of that.
            node.context.bus.publish(Backlog(node.clock.elapsed_s() + 1e6))
            for _ in range(40):
                await engine.run_in("acme", "job", 0)
            await signals.wait("finished", 40)
            assert 1 <= max(rooms) <= dispatcher.MAX_GIVES_WAY
            rooms.clear()
            node.context.bus.publish(Backlog(node.clock.elapsed_s() - 1000))
            # Twice: a claim that was under way may still take the first.
            for number in (41, 42):
                await engine.run_in("acme", "job", 0)
                await signals.wait("finished", number)
            assert max(rooms) > dispatcher.MAX_GIVES_WAY

    asyncio.run(scenario())


def test_under_load_a_node_claims_with_its_commits(tmp_path: Path) -> None:
    async def scenario() -> None:
        go = asyncio.Event()

        class Held(Script):
            async def execute(self, claim: Claim) -> Finished:
                await go.wait()
                return await super().execute(claim)

        async with working(tmp_path, Held(), SETTINGS.model_copy(update={"slots": 1})) as (engine, node, signals):
            alone = slots_of_claims(node.dispatcher)
            for _ in range(20):
                await engine.run_in("acme", "job", 0)
            await signals.wait("started", 1)
            go.set()
            await signals.wait("finished", 20)
            assert len(alone) < 10, "the first, and those that pass a commit that is about to begin"

    asyncio.run(scenario())


@pytest.mark.parametrize("number", [6, 7])
def test_a_tick_that_came_back_full_says_that_more_is_due_until_nothing_is(tmp_path: Path, number: int) -> None:
    async def scenario() -> None:
        settings = SETTINGS.model_copy(update={"tick_batch": 2})
        async with working(tmp_path, Script(), settings) as (engine, node, _signals):
            await node.ticker.stop()
            for each in range(number):
                await engine.schedules.create("acme", f"s{each}", script="job", rules="every 900s")
            with engine.context.database.write() as connection:
                connection.execute(update(schedule_clock).values(next_at=node.clock.now_us()))
            behind = []
            for _ in range(4):
                node.ticker.wake()
                await node.ticker.round()
                behind.append(node.ticker.behind_s is not None)
            assert behind == [True, True, True, False]

    asyncio.run(scenario())


def test_what_another_process_commits_is_seen_by_the_commit_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All other services sleep until they are woken."""
    monkeypatch.setattr("lodger.engine.node.context.FAR_S", 1e6)

    async def scenario() -> None:
        async with working(tmp_path, Script()) as (_engine, _node, signals):
            with Engine.open(str(tmp_path / "ledger.db"), settings=SETTINGS) as other:
                for number in range(1, 4):
                    await asyncio.to_thread(other.run_in, "acme", "job", 0)
                    await signals.wait("finished", number)

    asyncio.run(scenario())

"""The dispatcher alone: when it claims, what holds a slot, what it kills and hands back."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select
from tests.databases.fixtures import name, server
from tests.databases.fixtures import server_url as url
from tests.node.alone import Bench, Hanging, bench, claiming
from tests.node.harness import SETTINGS, Script

from lodger.engine.core.clock import from_us
from lodger.engine.core.events import (
    ActionsReady,
    AttemptFinished,
    AttemptReleased,
    AttemptStopped,
    ChangeReported,
    LeaseLost,
    LeaseRenewed,
)
from lodger.engine.core.execution import Claim
from lodger.engine.node.node_events import Claimed, Ticked
from lodger.engine.node.services.committer import Committer
from lodger.engine.node.services.dispatcher import Dispatcher, Reconciler, RunningAttempts
from lodger.engine.store.lifecycle import claims, tick
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.stores.postgresql.connections import LOCK_TIMEOUT_MS

__all__ = ["name", "server", "url"]


async def owed(alone: Bench, name: str) -> None:
    """Make a schedule of which one slot is due."""
    after = from_us(alone.context.clock.now_us() - 900_000_000)
    await alone.engine.schedules.create("acme", name, script="job", rules="every 900s", first_after=after)


async def ended(dispatcher: Dispatcher) -> None:
    """Kill what it runs."""
    dispatcher.attempts.kill()
    await dispatcher.attempts.drained()


def test_a_tick_claims_in_its_own_transaction_and_is_done_again_without_a_claim_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as alone:
            happened: list[object] = []
            for kind in (Ticked, Claimed, ActionsReady):
                alone.bus.subscribe(kind, happened.append)
            dispatcher, ticker = claiming(alone)
            await alone.register()
            for name, tries in (("one", 1), ("two", 2)):
                await owed(alone, name)
                ticker.wake()
                written = alone.engine.context.database.written
                await ticker.round()
                assert alone.engine.context.database.written == written + tries
                monkeypatch.setattr(claims, "claim", lambda *_given, **_more: 1 / 0)
            assert [type(each) for each in happened] == [Ticked, Claimed, Ticked, ActionsReady]
            assert {each.state for each in await alone.engine.actions.list("acme")} == {"running", "ready"}
            await ended(dispatcher)

    asyncio.run(scenario())


def test_a_tick_that_comes_during_a_claim_brings_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as alone:
            dispatcher, ticker = claiming(alone)
            claimed, go, claim = alone.heard(Claimed), threading.Event(), claims.claim

            def slow(*given: Any, **more: Any) -> list[Claim]:
                assert go.wait(60)
                return claim(*given, **more)

            await alone.register()
            await alone.engine.run_in("acme", "job", 0)
            await owed(alone, "s")
            monkeypatch.setattr(claims, "claim", slow)
            written = alone.engine.context.database.written
            claims_alone = asyncio.create_task(dispatcher.round())
            while not dispatcher.attempts.claiming:  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0)
            ticks = asyncio.create_task(ticker.round())
            await asyncio.sleep(0.01)
            go.set()
            await asyncio.gather(claims_alone, ticks)
            assert [len(each.claims) for each in claimed] == [1, 1]
            assert alone.engine.context.database.written == written + 2
            await ended(dispatcher)

    asyncio.run(scenario())


def test_a_commit_claims_for_the_slots_of_what_has_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, SETTINGS.model_copy(update={"slots": 2})) as alone:
            claimed, dispatcher = alone.heard(Claimed), Dispatcher(alone.context, Script(), RunningAttempts())
            committer = Committer(alone.context, dispatcher.write_and_claim, dispatcher.gathers_s)
            await alone.register()
            for _ in range(4):
                await alone.engine.run_in("acme", "job", 0)
            await dispatcher.round()
            await asyncio.gather(*dispatcher.attempts.tasks)
            written = alone.engine.context.database.written
            await committer.round()
            assert [len(each.claims) for each in claimed] == [2, 2]
            assert alone.engine.context.database.written == written + 1
            await asyncio.gather(*dispatcher.attempts.tasks)

    asyncio.run(scenario())


def test_a_dispatcher_that_has_stopped_claims_in_no_transaction_of_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as alone:
            dispatcher, ticker = claiming(alone)
            await alone.register()
            await owed(alone, "s")
            await dispatcher.start()
            await dispatcher.stop()
            await ticker.round()
            assert [each.state for each in await alone.engine.actions.list("acme")] == ["ready"]

    asyncio.run(scenario())


def test_a_tick_waits_for_nothing_that_a_claim_has_to_wait_for(url: str) -> None:
    """Others wait for what it has locked, and might be those it waits for."""

    async def scenario() -> None:
        async with bench(url) as alone:
            engine, claimed = alone.engine, alone.heard(Claimed)
            dispatcher, ticker = claiming(alone)
            lease = await alone.register()
            await owed(alone, "s")
            with engine.context.database.write() as connection:
                connection.execute(select(nodes.c.id).where(nodes.c.id == lease.node_id).with_for_update())
                async with asyncio.timeout(LOCK_TIMEOUT_MS / 2000):
                    await ticker.round()
                assert [len(each.claims) for each in claimed] == [0]
            await dispatcher.round()
            assert [len(each.claims) for each in claimed] == [0, 1]
            await ended(dispatcher)

    asyncio.run(scenario())


def test_a_claim_does_not_take_the_slots_that_the_ticker_is_filling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dispatcher has looked meanwhile, and finds that something may start."""

    async def scenario() -> None:
        async with bench(tmp_path, SETTINGS.model_copy(update={"slots": 2})) as alone:
            dispatcher, ticker = claiming(alone)
            begun: list[asyncio.Task[float]] = []
            read = alone.db.read

            async def and_tick(work: Callable[[Connection], object]) -> object:
                monkeypatch.setattr(alone.db, "read", read)
                found = await read(work)
                begun.append(asyncio.create_task(ticker.round()))
                while not dispatcher.attempts.claiming:  # noqa: ASYNC110 - no event tells it
                    await asyncio.sleep(0)
                return found

            await alone.register()
            for _ in range(4):
                await alone.engine.run_in("acme", "job", 0)
            await owed(alone, "s")
            monkeypatch.setattr(alone.db, "read", and_tick)
            await dispatcher.round()
            await asyncio.gather(*begun)
            assert len(dispatcher.attempts.running) == 2
            await asyncio.sleep(0)
            await ended(dispatcher)

    asyncio.run(scenario())


def test_what_comes_during_a_tick_that_fails_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as alone:
            dispatcher, ticker = claiming(alone)
            woken: list[bool] = []
            await alone.register()
            await owed(alone, "s")
            alone.bus.publish(ChangeReported())
            monkeypatch.setattr(dispatcher, "wake", lambda: woken.append(dispatcher.attempts.claiming))
            monkeypatch.setattr(tick, "tick", lambda *_given, **_more: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await ticker.round()
            assert woken == [False], "not while it would only see that something is being claimed"

    asyncio.run(scenario())


def test_what_has_ended_holds_no_slot_and_no_more_than_there_are_slots_waits_to_be_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, SETTINGS.model_copy(update={"slots": 2})) as alone:
            claimed, ended = alone.heard(Claimed), alone.heard(AttemptFinished)
            dispatcher, committer = (
                Dispatcher(alone.context, Script(), RunningAttempts()),
                Committer(alone.context, alone.write, lambda: 0.0),
            )
            await alone.register()
            for _ in range(6):
                await alone.engine.run_in("acme", "job", 0)
            for runs in (2, 4, 4):
                await dispatcher.round()
                await asyncio.sleep(0.01)
                assert len(ended) == runs
            assert dispatcher.attempts.full
            await committer.round()
            assert not dispatcher.attempts
            await dispatcher.round()
            assert [len(each.claims) for each in claimed] == [2, 2, 2]
            await asyncio.gather(*dispatcher.attempts.tasks)

    asyncio.run(scenario())


@pytest.mark.parametrize("begun", [True, False])
def test_a_lost_lease_kills_what_the_dispatcher_runs_and_halves_its_slots(tmp_path: Path, begun: bool) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as alone:
            claimed, stopped = alone.heard(Claimed), alone.heard(AttemptStopped)
            released = alone.heard(AttemptReleased)
            dispatcher = Dispatcher(alone.context, Hanging(), RunningAttempts())
            await alone.register()
            for _ in range(3):
                await alone.engine.run_in("acme", "job", 0)
            await dispatcher.round()
            assert [len(each.claims) for each in claimed] == [3]
            assert len(dispatcher.attempts) == 3
            if begun:
                await asyncio.sleep(0)
            alone.bus.publish(LeaseLost("a test"))
            async with asyncio.timeout(60):
                await dispatcher.attempts.drained()
            assert len(stopped) == len(released) == 3
            assert dispatcher.slots == SETTINGS.slots // 2
            alone.bus.publish(LeaseRenewed(0.0))
            assert dispatcher.slots == SETTINGS.slots

    asyncio.run(scenario())


def test_the_reconciler_kills_what_was_cancelled_and_hands_back_what_never_began(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as alone:
            attempts = RunningAttempts()
            dispatcher, reconciler = Dispatcher(alone.context, Hanging(), attempts), Reconciler(alone.context, attempts)
            await alone.register()
            mine = await alone.engine.run_in("acme", "job", 0)
            await dispatcher.round()
            await asyncio.sleep(0)
            await reconciler.round()
            assert len(attempts) == 1
            await alone.engine.actions.cancel(None, mine.id)
            await reconciler.round()
            await attempts.drained()
            (unanswered,) = await alone.claim()
            attempts.in_doubt = True
            await reconciler.round()
            assert await alone.state(unanswered) == "ready"
            assert not attempts.in_doubt

    asyncio.run(scenario())

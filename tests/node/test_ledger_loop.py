"""The ledger loop: what shares a transaction, what a failing part costs the others, what holds a slot; and the reconciler."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select
from tests.databases.fixtures import name, server
from tests.databases.fixtures import server_url as url
from tests.node.alone import Bench, Hanging, bench, looping
from tests.node.harness import SETTINGS, Script

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import AttemptReleased, Fault, LeaseLost, LeaseRenewed, LedgerChanged
from lodger.engine.effects import outcome_commit
from lodger.engine.node.node_events import AttemptStopped, BatchCommitted, Claimed, Ticked
from lodger.engine.node.services.reconciler import Reconciler
from lodger.engine.recurrence.rule import RuleSpec
from lodger.engine.store.drivers.postgresql.connections import LOCK_TIMEOUT_MS
from lodger.engine.store.lifecycle import claims, tick
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.testing.clock import FakeClock

__all__ = ["name", "server", "url"]

TWO_SLOTS = SETTINGS.model_copy(update={"slots": 2})


async def schedule_due(alone: Bench, name: str, *, in_us: int = 0) -> None:
    """Create a schedule of which one slot is due now, or in so many microseconds."""
    slot = from_us(alone.context.clock.now_us() + in_us)
    rule = RuleSpec("every 900s", dtstart=slot.isoformat())
    await alone.engine.schedules.create("acme", name, script="job", rules=rule, first_after=slot - timedelta(seconds=1))
    alone.bus.publish(LedgerChanged())


async def request_runs(alone: Bench, number: int) -> None:
    """Ask for runs."""
    for _ in range(number):
        await alone.engine.run_in("acme", "job", 0)
    alone.bus.publish(LedgerChanged())


async def states(alone: Bench) -> list[str]:
    """Return the sorted states of all actions."""
    return sorted(each.state for each in await alone.engine.actions.list("acme"))


@contextmanager
def broken(what: object, name: str, error: Exception) -> Iterator[None]:
    """Let a function of the store raise an error."""

    def raises(*_given: object, **_more: object) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(what, name, raises)
        yield


async def test_ends_ticks_and_claims_share_a_transaction(tmp_path: Path) -> None:
    async with (
        bench(tmp_path, TWO_SLOTS, clock := FakeClock()) as alone,
        looping(alone, Script()) as (loop, attempts),
    ):
        claimed, ticked, committed = alone.heard(Claimed), alone.heard(Ticked), alone.heard(BatchCommitted)
        await alone.register()
        await request_runs(alone, 2)
        await schedule_due(alone, "s", in_us=1_000_000)
        await loop.round()
        clock.move_to(clock.now_us() + 950_000)
        await loop.round()
        await asyncio.gather(*attempts.tasks)
        await request_runs(alone, 1)
        clock.move_to(clock.now_us() + 50_000)
        written = alone.engine.context.database.written
        await loop.round()
        assert alone.engine.context.database.written == written + 1
        assert [len(each.batch) for each in committed] == [2]
        assert len(ticked) == 1
        assert [len(each.claims) for each in claimed] == [2, 2]


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("ours"), Unavailable("database_busy", place="ledger", reason="rows are locked")]
)
@pytest.mark.parametrize(
    ("what", "name", "part", "expected"),
    [
        (outcome_commit, "commit", "ends", ["running", "running"]),
        (tick, "tick", "due-clocks", ["done"]),
        (claims, "claim", "free-slots", ["done", "ready"]),
    ],
)
async def test_without_a_part_that_fails_the_others_are_written(
    tmp_path: Path, error: Exception, what: object, name: str, part: str, expected: list[str]
) -> None:
    async with (
        bench(tmp_path, SETTINGS, clock := FakeClock()) as alone,
        looping(alone, Script()) as (loop, attempts),
    ):
        faults = alone.heard(Fault)
        await alone.register()
        await request_runs(alone, 1)
        await schedule_due(alone, "s", in_us=1_000_000)
        await loop.round()
        await asyncio.gather(*attempts.tasks)
        clock.move_to(clock.now_us() + 1_000_000)
        with broken(what, name, error):
            for _ in range(3):
                await loop.round()
        assert [(each.service, each.error) for each in faults] == [(part, error)]
        assert await states(alone) == expected
        clock.move_to(clock.now_us() + 1_000_000)
        for _ in range(3):
            await loop.round()
            await asyncio.gather(*attempts.tasks)
        assert await states(alone) == ["done", "done"]


async def test_draining_waits_for_the_claim_that_is_under_way(tmp_path: Path) -> None:
    async with bench(tmp_path) as alone, looping(alone, Hanging()) as (loop, attempts):
        await alone.register()
        await request_runs(alone, 1)
        await loop.start()
        while not attempts.claiming:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0)
        await loop.drain()
        assert len(attempts.running) == 1
        await loop.stop()


async def test_a_tick_waits_for_nothing_that_a_claim_has_to_wait_for(url: str) -> None:
    """Others wait for what it has locked, and might be those it waits for."""

    async with bench(url) as alone, looping(alone, Hanging()) as (loop, _attempts):
        engine, claimed = alone.engine, alone.heard(Claimed)
        lease = await alone.register()
        await schedule_due(alone, "s")
        with engine.context.database.write() as connection:
            connection.execute(select(nodes.c.id).where(nodes.c.id == lease.node_id).with_for_update())
            async with asyncio.timeout(LOCK_TIMEOUT_MS / 2000):
                await loop.round()
            assert [len(each.claims) for each in claimed] == [0]
        await loop.round()
        assert [len(each.claims) for each in claimed] == [0, 1]


async def test_a_question_that_the_database_does_not_answer_keeps_no_end_from_being_written(tmp_path: Path) -> None:
    async with bench(tmp_path) as alone, looping(alone, Script()) as (loop, attempts):
        committed, answer = alone.heard(BatchCommitted), asyncio.Event()
        await alone.register()
        await request_runs(alone, 1)
        await loop.round()
        read = alone.db.read

        async def late(work: object) -> object:
            await answer.wait()
            return await read(work)  # type: ignore[arg-type]  # forwarded

        alone.db.read = late  # type: ignore[method-assign]  # the server's part
        await request_runs(alone, 1)
        await asyncio.gather(*attempts.tasks)
        async with asyncio.timeout(60):
            await loop.round()
        assert [len(each.batch) for each in committed] == [1]
        answer.set()


async def test_ended_attempts_hold_no_slot_and_no_more_than_there_are_slots_wait_to_be_written(tmp_path: Path) -> None:
    async with (
        bench(tmp_path, TWO_SLOTS, clock := FakeClock()) as alone,
        looping(alone, Script()) as (loop, attempts),
    ):
        claimed = alone.heard(Claimed)
        await alone.register()
        await request_runs(alone, 6)
        with broken(outcome_commit, "commit", Unavailable("database_busy", place="ledger", reason="rows are locked")):
            for runs in (2, 4, 4):
                for _ in range(3):
                    await loop.round()
                await asyncio.gather(*attempts.tasks)
                assert len(attempts.ended) == runs
        assert attempts.free <= 0
        clock.move_to(clock.now_us() + 10_000_000)
        for _ in range(2):
            await loop.round()
        assert [len(each.claims) for each in claimed] == [2, 2, 2]


@pytest.mark.parametrize("begun", [True, False])
async def test_a_lost_lease_kills_all_attempts_and_halves_the_slots(tmp_path: Path, begun: bool) -> None:
    async with bench(tmp_path) as alone, looping(alone, Hanging()) as (loop, attempts):
        stopped, released = alone.heard(AttemptStopped), alone.heard(AttemptReleased)
        await alone.register()
        await request_runs(alone, 3)
        await loop.round()
        assert len(attempts) == 3
        if begun:
            await asyncio.sleep(0)
        alone.bus.publish(LeaseLost("a test"))
        async with asyncio.timeout(60):
            await attempts.drained()
        assert len(stopped) == len(released) == 3
        assert attempts.slots == SETTINGS.slots // 2
        alone.bus.publish(LeaseRenewed(0.0))
        assert attempts.slots == SETTINGS.slots


async def test_the_reconciler_kills_cancelled_attempts_and_hands_back_those_that_never_began(tmp_path: Path) -> None:
    async with bench(tmp_path) as alone, looping(alone, Hanging()) as (loop, attempts):
        reconciler = Reconciler(alone.context, attempts)
        await alone.register()
        mine = await alone.engine.run_in("acme", "job", 0)
        await loop.round()
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

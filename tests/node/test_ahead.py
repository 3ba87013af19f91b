"""What is ticked and claimed before it is due: it begins at its instant, and nothing is decided that may still change."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.node.alone import Bench, bench, looping
from tests.node.harness import OK, SETTINGS

from lodger.engine.core.clock import to_us
from lodger.engine.core.events import AttemptStarted, LedgerChanged
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.node.ledger_loop.loop import LedgerLoop
from lodger.engine.node.node_events import AttemptStopped
from lodger.engine.node.running_attempts import RunningAttempts
from lodger.engine.recurrence.rule import RuleSpec
from lodger.engine.testing.clock import FakeClock
from lodger.sandbox.outcome import Outcome

SLOT = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)
SLOT_US = to_us(SLOT)
MIDNIGHT_US = to_us(datetime(2026, 6, 16, tzinfo=UTC))
MS = 1000
SLOTS = 2


class Runs:
    """Executor whose attempts of a schedule end when the test says so; at once if they need not."""

    def __init__(self) -> None:
        self.seen: list[Claim] = []
        self.held: set[str] = set()
        self.ends: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def execute(self, claim: Claim) -> Finished:
        self.seen.append(claim)
        if str(claim.schedule_id) in self.held:
            await self.ends[str(claim.schedule_id)].wait()
        return OK


class Ahead:
    """A node's ledger loop on a clock that stands until it is moved."""

    def __init__(
        self, alone: Bench, clock: FakeClock, script: Runs, loop: LedgerLoop, attempts: RunningAttempts
    ) -> None:
        self.alone, self.clock, self.script, self.loop, self.attempts = alone, clock, script, loop, attempts

    async def round_at(self, us: int) -> list[str]:
        """Move the clock, let the loop do a round, and return the states of all actions."""
        self.clock.move_to(us)
        await self.loop.round()
        return await self.states()

    async def end(self, schedule_id: str) -> None:
        """Let an attempt of a held schedule end."""
        ended = self.attempts.ended
        self.script.ends[schedule_id].set()
        while self.attempts.ended == ended:  # noqa: ASYNC110 - the executor answers within a few steps
            await asyncio.sleep(0)

    async def states(self) -> list[str]:
        """Return the states of all actions, the oldest first."""
        found = await self.alone.engine.actions.list("acme")
        return [each.state for each in sorted(found, key=lambda each: each.due_at)]

    @property
    def written(self) -> int:
        """Number of write transactions."""
        return self.alone.engine.context.database.written


@asynccontextmanager
async def ahead(tmp_path: Path) -> AsyncIterator[Ahead]:
    """Open a node with two slots, two seconds before the slot of the schedules."""
    clock = FakeClock(SLOT.replace(hour=11, minute=59, second=58))
    async with bench(tmp_path, SETTINGS.model_copy(update={"ahead_s": 0.03, "slots": SLOTS}), clock) as alone:
        await alone.register()
        script = Runs()
        async with looping(alone, script) as (loop, attempts):
            yield Ahead(alone, clock, script, loop, attempts)


async def schedule(
    made: Ahead, name: str = "s", rule: str = "every 1d", at: datetime = SLOT, *, held: bool = False
) -> str:
    """Create a schedule, whose attempts end when the test says so if they are held, and return its id."""
    row = await made.alone.engine.schedules.create(
        "acme", name, script="job", rules=RuleSpec(rule, dtstart=at.isoformat()), overlap="skip"
    )
    made.script.held |= {row.id} if held else set()
    made.alone.bus.publish(LedgerChanged())
    return row.id


async def test_a_slot_is_claimed_ahead_and_begins_at_its_instant(tmp_path: Path) -> None:
    async with ahead(tmp_path) as node:
        started = node.alone.heard(AttemptStarted)
        await schedule(node)
        assert await node.round_at(SLOT_US - 11 * MS) == []
        assert await node.round_at(SLOT_US - 10 * MS) == ["running"]
        for us in (SLOT_US - 10 * MS, SLOT_US - 1):
            node.clock.move_to(us)
            await asyncio.sleep(0.01)
            assert not started
            assert not node.script.seen
        node.clock.move_to(SLOT_US)
        await asyncio.gather(*node.attempts.tasks)
        (claim,) = node.script.seen
        assert (claim.due_us, claim.started_us) == (SLOT_US, SLOT_US)
        assert [each.claim for each in started] == [claim]
        (action,) = await node.alone.engine.actions.list("acme")
        assert action.started_at == SLOT


@pytest.mark.parametrize("ends", [True, False], ids=["it ends", "it goes on"])
async def test_a_slot_of_a_schedule_that_runs_is_decided_when_it_is_due(tmp_path: Path, ends: bool) -> None:
    async with ahead(tmp_path) as node:
        await schedule(node, rule="every 1s", held=True)
        await node.round_at(SLOT_US)
        assert await node.round_at(SLOT_US + 990 * MS) == ["running"]
        if ends:
            (action,) = await node.alone.engine.actions.list("acme")
            await node.alone.engine.actions.cancel(None, action.id)
        expected = ["cancelled", "running"] if ends else ["running", "skipped"]
        assert await node.round_at(SLOT_US + 1000 * MS) == expected


async def test_a_late_schedule_is_not_ticked_ahead(tmp_path: Path) -> None:
    """What runs from its first slot may have ended at its second."""

    async with ahead(tmp_path) as node:
        await schedule(node, rule="every 1s")
        assert await node.round_at(SLOT_US + 980 * MS) == ["running"]


async def test_what_is_killed_before_it_is_due_never_begins(tmp_path: Path) -> None:
    async with ahead(tmp_path) as node:
        stopped = node.alone.heard(AttemptStopped)
        await schedule(node)
        await node.round_at(SLOT_US - 10 * MS)
        (action,) = await node.alone.engine.actions.list("acme")
        await node.alone.engine.actions.cancel(None, action.id)
        (attempt,) = await node.alone.engine.actions.attempts(None, action.id)
        assert attempt.started_at <= attempt.finished_at
        node.attempts.kill()
        await node.attempts.drained()
        node.clock.move_to(SLOT_US)
        assert [each.finished.outcome for each in stopped] == [Outcome.CANCELLED]
        assert not node.script.seen


async def test_a_clock_that_is_set_back_holds_nothing_up(tmp_path: Path) -> None:
    async with ahead(tmp_path) as node:
        await schedule(node)
        await node.round_at(SLOT_US - 10 * MS)
        now_us = node.clock.now_us()
        node.alone.context.clock.set_offset(now_us - 3_600_000_000, now_us, now_us)
        node.clock.move_to(now_us + 30 * MS)
        await asyncio.gather(*node.attempts.tasks)
        assert len(node.script.seen) == 1


async def test_an_attempt_claimed_from_far_away_waits_until_it_is_due(tmp_path: Path) -> None:
    """On a server 20 ms away claims are made 300 ms ahead, whatever ``ahead_s`` says."""

    async with ahead(tmp_path) as node:
        await schedule(node)
        await node.round_at(SLOT_US - 10 * MS)
        (claim,) = node.attempts.claims
        node.attempts.begin([replace(claim, attempt=2, due_us=SLOT_US + 290 * MS)])
        node.clock.move_to(SLOT_US + 289 * MS)
        await asyncio.sleep(0.01)
        assert [each.attempt for each in node.script.seen] == [1]
        node.clock.move_to(SLOT_US + 290 * MS)
        await asyncio.gather(*node.attempts.tasks)
        assert [each.attempt for each in node.script.seen] == [1, 2]


async def test_an_end_waits_for_others_only_while_attempts_run(tmp_path: Path) -> None:
    async with ahead(tmp_path) as node:
        one, two = [await schedule(node, name, held=True) for name in ("one", "two")]
        assert await node.round_at(SLOT_US) == ["running", "running"]
        node.clock.move_to(SLOT_US + 5 * MS)
        await node.end(one)
        written = node.written
        assert await node.loop.round() == pytest.approx(0.015), (
            "until the tick that comes before what was ticked is over"
        )
        assert node.written == written
        assert sorted(await node.round_at(SLOT_US + 20 * MS)) == ["done", "running"]
        await node.end(two)
        assert await node.round_at(SLOT_US + 21 * MS) == ["done", "done"], "no other attempt runs"


async def test_an_end_does_not_wait_while_an_action_waits_for_its_slot(tmp_path: Path) -> None:
    async with ahead(tmp_path) as node:
        one, _two = [await schedule(node, name, held=True) for name in ("one", "two")]
        await node.round_at(SLOT_US)
        asked = await node.alone.engine.run_in("acme", "job", 0)
        node.alone.bus.publish(LedgerChanged())
        node.clock.move_to(SLOT_US + 1 * MS)
        await node.loop.round()
        await node.end(one)
        node.alone.bus.publish(LedgerChanged())
        await node.loop.round()
        assert (await node.alone.engine.actions.get(None, asked.id)).state == "running"


async def test_a_day_is_not_looked_into_before_it_begins(tmp_path: Path) -> None:
    """Its budgets are its own."""

    async with ahead(tmp_path) as node:
        context = node.alone.context
        assert context.lead_us(SLOT_US) == SLOT_US - 10 * MS
        assert context.ahead_us(SLOT_US) == SLOT_US + 30 * MS
        assert context.lead_us(MIDNIGHT_US) == MIDNIGHT_US
        assert context.ahead_us(MIDNIGHT_US - 10 * MS) == MIDNIGHT_US - 1
        # A server that is 20 ms away is asked sooner; one that answered late once is not farther away.
        for answered_us in (500 * MS, 20 * MS):
            context.clock.set_offset(answered_us // 2, 0, answered_us)
        assert context.ahead_us(SLOT_US) == SLOT_US + 360 * MS

"""The running node: on time, cancellations kill, leases are lost and found, faults do not stop it."""

import asyncio
from pathlib import Path
from typing import Any

from sqlalchemy import text
from tests.node.harness import OK, SETTINGS, Script, working

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.sandbox.outcome import Outcome


async def test_deleting_a_tenant_kills_its_workers(tmp_path: Path) -> None:
    script = Script(hang=True)
    async with working(tmp_path, script) as (engine, node, signals):
        asked = await engine.run_in("acme", "job", 0)
        await signals.wait("started")
        await engine.tenants.delete("acme")
        async with asyncio.timeout(120):
            await node.attempts.drained()
        assert [claim.action_id for claim in script.killed] == [asked.id]


async def test_an_executor_that_raises_is_our_fault_and_is_tried_again(tmp_path: Path) -> None:
    def answer(claim: Claim) -> Finished:
        if claim.attempt == 1:
            raise ZeroDivisionError("ours")
        return OK

    async with working(tmp_path, Script(answer=answer)) as (engine, _node, signals):
        asked = await engine.run_in("acme", "job", 0)
        await signals.wait("finished", 2)
        attempts = await engine.actions.attempts(None, asked.id)
        assert [attempt.outcome for attempt in attempts] == [Outcome.ENGINE_FAULT, Outcome.OK]
        assert attempts[0].error is not None
        assert attempts[0].error.name == "EngineFault", "exceptions of the engine are told to its operator alone"


async def test_a_node_that_lost_its_lease_kills_its_workers_and_begins_anew(tmp_path: Path) -> None:
    script = Script(hang=True)
    settings = SETTINGS.model_copy(update={"lease_s": 3.0})
    async with working(tmp_path, script, settings) as (engine, node, signals):
        asked = await engine.run_in("acme", "job", 0)
        await signals.wait("started")
        before = node.lease
        assert before is not None
        with engine.context.database.write() as connection:
            connection.execute(text("UPDATE lodger_nodes SET lease_until_us = 0, epoch = epoch + 1, state = 'lost'"))
        await signals.wait("lease_lost")
        script.hang = False
        await signals.wait("finished")
        assert script.killed[0].action_id == asked.id
        assert node.lease is not None
        assert node.lease.epoch > before.epoch
        outcomes = [attempt.outcome for attempt in await engine.actions.attempts(None, asked.id)]
        assert outcomes == [Outcome.WORKER_LOST, Outcome.OK]


async def test_stopping_hands_back_what_does_not_end_and_flushes_what_has(tmp_path: Path) -> None:
    script = Script(hang=True)
    async with working(tmp_path, script) as (engine, node, signals):
        asked = await engine.run_in("acme", "job", 0)
        await signals.wait("started")
        await node.stop()
        await node.stop()
        (event,) = await signals.wait("handed_back")
        assert (event.tenant_id, event.action_id) == ("acme", asked.id)
        action = await engine.actions.get(None, asked.id)
        assert (action.state, action.attempt) == ("ready", 1)
        script.hang = False
        async with engine.node(script, "n2") as other:
            await signals.wait("finished")
            assert other.attempts.room().long == SETTINGS.slots // 2
    assert (script.starts, script.stops) == (2, 2)


async def test_every_service_survives_starting_and_stopping_in_any_order(tmp_path: Path) -> None:
    async with working(tmp_path, Script()) as (engine, node, signals):
        for _ in range(20):
            for service in node.services:
                await asyncio.gather(service.stop(), service.stop())
                await asyncio.gather(service.start(), service.start())
        names = sorted(f"lodger-{service.name}" for service in node.services)
        assert sorted(name for task in asyncio.all_tasks() if (name := task.get_name()) in names) == names
        await engine.run_in("acme", "job", 0)
        await signals.wait("finished")


async def test_a_claim_whose_answer_was_lost_is_handed_back_at_once(tmp_path: Path) -> None:
    """The server committed and the connection broke before its answer: the claim does not wait for its deadline."""

    async with working(tmp_path, Script()) as (engine, node, signals):
        true, lost = node.db.write, asyncio.Event()

        async def write(*given: Any, **more: Any) -> object:
            answer = await true(*given, **more)
            if not lost.is_set() and await engine.actions.list("acme", state="running"):
                lost.set()
                raise Unavailable("database_unreachable", place="ledger", reason="the answer was lost")
            return answer

        node.db.write = write  # type: ignore[method-assign]  # the network's part
        asked = await engine.run_in("acme", "job", 0)
        (finished,) = await signals.wait("finished")
        assert lost.is_set()
        assert finished.details["attempt"] == 2
        outcomes = [attempt.outcome for attempt in await engine.actions.attempts(None, asked.id)]
        assert outcomes == [Outcome.OK], "it never began: nobody is blamed"


async def test_events_can_be_read_as_they_come(tmp_path: Path) -> None:
    async with working(tmp_path, Script()) as (engine, _node, _signals):
        events = engine.events()
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await engine.run_in("acme", "job", 0)
        assert (await asyncio.wait_for(first, 120)).kind == "started"
        await events.aclose()  # type: ignore[attr-defined]  # an async generator

"""Handlers: Python functions of the platform's as actions; synchronous, asynchronous, cancelled, late, throwing."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.node.harness import SETTINGS, Script, Signals, working

from lodger.engine import Engine
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.handlers import Call
from lodger.engine.core.ids import PLATFORM
from lodger.engine.node.executors import host_executor
from lodger.engine.node.node import Node
from lodger.sandbox.outcome import Outcome


@asynccontextmanager
async def hosting(folder: Path, **more: Any) -> AsyncIterator[tuple[Engine, Node, Signals]]:
    settings = SETTINGS.model_copy(update=more)
    async with working(folder, Script(), settings) as (engine, node, signals):
        yield engine, node, signals


async def test_a_synchronous_and_an_asynchronous_handler_run_with_their_params_and_return_a_result(
    tmp_path: Path,
) -> None:
    seen: dict[str, Any] = {}

    async with hosting(tmp_path) as (engine, _node, signals):

        @engine.handler("rebuild-index", params={"days": {"type": "integer", "default": 7}})
        def rebuild(call: Call) -> object:
            seen["thread"] = threading.current_thread()
            seen["call"] = call
            call.log("half way")
            return {"rebuilt": call.params["days"]}

        @engine.handler("warm-up")
        async def warm_up(call: Call) -> object:
            seen["loop"] = asyncio.get_running_loop()
            return [call.attempt]

        one = await engine.run_in(PLATFORM, "rebuild-index", 0, params={"days": 2})
        two = await engine.run_in(PLATFORM, "warm-up", 0)
        await signals.wait("finished", 2)
        done = await engine.actions.get(None, one.id)
        assert (done.state, done.result, done.requires) == ("done", {"rebuilt": 2}, ("host:rebuild-index",))
        assert (await engine.actions.get(None, two.id)).result == [1]
        assert [line.text for line in await engine.actions.logs(None, one.id)] == ["half way"]
        assert seen["thread"] is not threading.main_thread()
        assert seen["loop"] is asyncio.get_running_loop()
        call = seen["call"]
        assert (call.tenant_id, call.action_id, call.node) == (PLATFORM, one.id, "n1")


async def test_it_runs_by_schedule_on_every_node_and_a_tenant_binds_what_is_offered(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (engine, _node, signals):
        engine.handler("flush")(lambda call: call.node)
        engine.handler("invoice", offered=True)(lambda call: call.tenant_id)
        with pytest.raises(NotFound):
            await engine.schedules.create("acme", "s", script="@flush", rules="every 1s")
        await engine.schedules.create(PLATFORM, "s", script="flush", rules="every 1s", placement="every_node")
        mine = await engine.schedules.create("acme", "s", script="@invoice", rules="every 1s")
        async with engine.node(Script(), "n2"):
            await signals.until(lambda: _has_done(engine, mine.id))
            await signals.until(lambda: _ran_on_nodes(engine, {"n1", "n2"}))
        (last,) = await engine.actions.list("acme", mine.id, "done", limit=1)
        assert last.result == "acme"


async def _has_done(engine: Engine, schedule: str) -> bool:
    return bool(await engine.actions.list("acme", schedule, "done"))


async def _ran_on_nodes(engine: Engine, names: set[str]) -> bool:
    """Whether the platform's schedule has run on each of these nodes."""
    done = await engine.actions.list(PLATFORM, state="done")
    assert all(action.result == action.node_key for action in done)
    return names <= {action.node_key for action in done}


def _raise(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("function", "outcome", "name"),
    [
        (lambda _call: 1 / 0, Outcome.SCRIPT_ERROR, "ZeroDivisionError"),
        (lambda _call: object(), Outcome.SCRIPT_ERROR, "TypeError"),
        (lambda _call: float("nan"), Outcome.SCRIPT_ERROR, "TypeError"),
        (lambda _call: "\ud800", Outcome.SCRIPT_ERROR, "TypeError"),
        (lambda _call: "x" * 300_000, Outcome.OUTPUT_LIMIT, "LimitExceeded"),
        (lambda _call: _raise(SystemExit(3)), Outcome.SCRIPT_ERROR, "RuntimeError"),
        (lambda call: call.cancelled.set() or call.check(), Outcome.SCRIPT_ERROR, "Cancelled"),
    ],
)
async def test_what_a_handler_does_wrong_is_how_its_run_ended(
    tmp_path: Path, function: Any, outcome: Outcome, name: str
) -> None:
    async with hosting(tmp_path) as (engine, _node, signals):
        engine.handler("faulty")(function)
        asked = await engine.run_in(PLATFORM, "faulty", 0)
        await signals.wait("finished")
        failed = await engine.actions.get(None, asked.id)
        assert (failed.state, failed.outcome) == ("failed", outcome)
        assert failed.error is not None
        assert failed.error.name == name


async def test_an_error_names_the_line_of_the_handler(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (engine, _node, signals):

        @engine.handler("faulty")
        async def faulty(_call: Call) -> None:
            raise ValueError("no such index")

        await engine.run_in(PLATFORM, "faulty", 0)
        (event,) = await signals.wait("finished")
        error = event.details["finished"].error
        assert (error.message, error.file) == ("no such index", Path(__file__).name)
        assert "raise ValueError" in error.stack


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_cancelled_handler_is_told_and_what_it_said_is_kept(tmp_path: Path, asynchronous: bool) -> None:
    ended = threading.Event()

    async with hosting(tmp_path) as (engine, _node, signals):
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        async def waits(call: Call) -> None:
            call.log("begun")
            begun.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.set()

        def looks(call: Call) -> None:
            call.log("begun")
            loop.call_soon_threadsafe(begun.set)
            call.cancelled.wait(120)
            ended.set()
            call.check()

        engine.handler("long")(waits if asynchronous else looks)
        asked = await engine.run_in(PLATFORM, "long", 0)
        await asyncio.wait_for(begun.wait(), 120)
        assert (await engine.actions.cancel(None, asked.id)).state == "cancelled"
        await signals.wait("killed")
        assert await asyncio.to_thread(ended.wait, 20)
        (attempt,) = await engine.actions.attempts(None, asked.id)
        assert (attempt.outcome, [line.text for line in attempt.logs]) == (Outcome.CANCELLED, ["begun"])
        assert attempt.usage.wall_ms > 0


async def test_a_deadline_ends_the_run_and_the_rescuer_grants_a_long_one(tmp_path: Path) -> None:
    async with hosting(tmp_path, grace_s=0.2) as (engine, _node, signals):
        release = threading.Event()

        @engine.handler("late", deadline_s=0.1)
        def late(call: Call) -> None:
            call.cancelled.wait(120)

        @engine.handler("long", deadline_s=3600)
        def long(_call: Call) -> str:
            release.wait(120)
            return "there"

        asked = await engine.run_in(PLATFORM, "late", 0)
        await signals.wait("finished")
        failed = await engine.actions.get(None, asked.id)
        assert failed.outcome is Outcome.WALL_LIMIT
        one = await engine.run_in(PLATFORM, "long", 0)
        await signals.wait("started", 2)
        with engine.context.database.read() as connection:
            until = connection.exec_driver_sql(
                "SELECT deadline_us - started_us FROM lodger_actions WHERE state = 'running'"
            ).scalar_one()
        assert until == 3_600_200_000
        release.set()
        await signals.wait("finished", 2)
        assert (await engine.actions.get(None, one.id)).result == "there"


async def test_a_handler_that_ignores_its_cancellation_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_executor, "GRACE_S", 0.05)
    release = threading.Event()
    gone = threading.Event()

    async with hosting(tmp_path) as (engine, node, signals):

        @engine.handler("deaf")
        def deaf(_call: Call) -> None:
            release.wait(120)
            gone.set()

        asked = await engine.run_in(PLATFORM, "deaf", 0)
        await signals.wait("started")
        await engine.actions.cancel(None, asked.id)
        async with asyncio.timeout(120):
            await node.attempts.drained()
    assert not gone.is_set(), "the node has stopped while the handler goes on"
    release.set()
    assert await asyncio.to_thread(gone.wait, 20)


async def test_what_cannot_be_registered_is_refused(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (engine, _node, _signals):
        engine.handler("taken")(print)
        engine.handler("taken")(print)
        with pytest.raises(Conflict):
            engine.handler("taken")(lambda _call: None)
        for name in ("", "Re Build", "node:x", "x" * 60, "é"):
            with pytest.raises(InputError):
                engine.handler(name)(print)
        for deadline in (0, -1, 86_401, float("nan"), True):
            with pytest.raises(InputError):
                engine.handler("late", deadline_s=deadline)(print)
        with pytest.raises(InputError):
            engine.handler("typed", params={"a": {"type": "what"}})(print)
        with pytest.raises(InputError):
            engine.handler("text")("not a function")  # type: ignore[type-var]  # as people give it
        assert [script.name for script in await engine.scripts.list(PLATFORM)] == ["taken"]

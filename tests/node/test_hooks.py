"""Hooks: the events of each name and tenant, a slow one, one that raises, one that is a coroutine function."""

import asyncio
import copy
import queue
import threading
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
from tests.node.harness import OK, Script, working

from lodger.engine.core.errors import InputError
from lodger.engine.core.events import CLASSES, Event, EventBus
from lodger.engine.core.execution import Claim
from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.effects.finished import Finished
from lodger.engine.service import hooks
from lodger.engine.service.hooks import HOOKS, Hooks
from lodger.engine.testing import Stage
from lodger.sandbox.outcome import Outcome


def broken(_params: object) -> object:
    raise ValueError("no")


def test_each_name_stands_for_its_events() -> None:
    called: queue.Queue[tuple[str, Event]] = queue.Queue()
    with Stage(pretend={"good": lambda _params: 1, "bad": broken}, runs_per_day=3, missed_after_s=10) as stage:
        engine = stage.engine
        for spec in HOOKS:
            engine.on(spec.name, lambda event, name=spec.name: called.put((name, event)))

        def heard() -> list[tuple[str, str | None]]:
            last = threading.Event()
            engine.hooks.add("started", lambda _event: last.set(), "nobody")
            engine.events.publish(Event("started", 0, "nobody", details={"lateness_ms": 0}))
            assert last.wait(120)
            found = []
            while not called.empty():
                name, event = called.get()
                if event.tenant_id != "nobody":
                    found.append((name, event.tenant_id))
            return found

        engine.tenants.create("acme")
        for name in ("good", "bad"):
            engine.scripts.put("acme", name, "export default () => 1")
        engine.run_in("acme", "good", 0)
        stage.settle()
        assert heard() == [("started", "acme"), ("finished", "acme")]
        engine.run_in("acme", "bad", 0)
        stage.settle()
        assert heard() == [("started", "acme"), ("finished", "acme"), ("failed", "acme")]
        engine.run_at("acme", "good", stage.now)
        stage.clock.move_to(stage.clock.now_us() + 11_000_000)
        stage.settle()
        assert sorted(heard()) == [("budget", "acme"), ("finished", "acme"), ("late", "acme"), ("started", "acme")]
        for _ in range(2):
            engine.run_in("acme", "good", 0)
            stage.settle()
        assert heard() == [("budget", "acme")], "used up: once a day"
        stage.advance(timedelta(days=1))
        engine.run_in("acme", "good", 0)
        stage.settle()
        assert heard() == [("started", "acme"), ("finished", "acme")]


def test_of_a_tenant_only_and_taken_off_again() -> None:
    mine: list[str | None] = []
    with Stage(pretend={"job": lambda _params: 1}) as stage:
        forget = stage.engine.on("finished", lambda event: mine.append(event.tenant_id), tenant_id="acme")
        for tenant in ("acme", "zeta"):
            stage.engine.tenants.create(tenant)
            stage.engine.scripts.put(tenant, "job", "export default () => 1")
            stage.engine.run_in(tenant, "job", 0)
        stage.settle()
        stage.engine.hooks.close()
        assert mine == ["acme"]
        forget()


def test_a_hook_that_raises_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    called = threading.Semaphore(0)
    events = EventBus()
    made = Hooks(events, ProcessMetrics(), 10)

    def wrong(_event: Event) -> None:
        raise OSError("the platform's own")

    made.add("started", wrong)
    made.add("started", lambda _event: called.release())
    for _ in range(2):
        events.publish(Event("started", 0, details={"lateness_ms": 0}))
    assert called.acquire(timeout=120)
    assert called.acquire(timeout=120)
    made.close()
    made.close()
    assert [record.message for record in caplog.records] == ["a hook for started raised an error"] * 2
    with pytest.raises(InputError, match="no hook 'finnished'"):
        made.add("finnished", wrong)


def test_a_slow_one_delays_no_slot_and_what_it_misses_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "KEPT", 5)
    events, process_metrics, go = EventBus(), ProcessMetrics(), threading.Event()
    made = Hooks(events, process_metrics, 10)
    seen: list[int] = []

    def slow(event: Event) -> None:
        go.wait(120)
        seen.append(event.at_us)

    made.add("started", slow)
    for number in range(20):
        events.publish(Event("started", number, details={"lateness_ms": 0}))
    go.set()
    made.close()
    assert len(seen) in {5, 6}
    assert seen == list(range(len(seen)))
    (dropped,) = [metric for metric in process_metrics.read() if metric.name == "lodger_hooks_dropped_total"]
    assert sum(sample.value for sample in dropped.samples) == 20 - len(seen)


def test_one_that_hangs_holds_up_no_end(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(hooks, "CLOSE_S", 0.2)
    events, begun, go = EventBus(), threading.Event(), threading.Event()
    made = Hooks(events, ProcessMetrics(), 10)

    def hangs(_event: Event) -> None:
        begun.set()
        go.wait(60)

    made.add("started", hangs)
    (thread,) = [each for each in threading.enumerate() if each.name == "lodger-hooks"]
    events.publish(Event("started", 0, details={"lateness_ms": 0}))
    assert begun.wait(120)
    made.close()
    assert "still running" in caplog.text
    go.set()
    thread.join(120)
    assert not thread.is_alive()


async def test_a_coroutine_function_runs_on_the_loop_that_set_it(tmp_path: Path) -> None:
    def answer(claim: Claim) -> Finished:
        return OK if claim.params == 1 else Finished(Outcome.SCRIPT_ERROR)

    loop, failed = asyncio.get_running_loop(), asyncio.Event()
    async with working(tmp_path, Script(answer=answer)) as (engine, _node, _signals):
        kept: list[Event] = []

        @engine.on("failed", tenant_id="acme")
        async def tell(event: Event) -> None:
            assert asyncio.get_running_loop() is loop
            kept.append(event)
            failed.set()

        await engine.run_in("acme", "job", 0, 1)
        asked = await engine.run_in("acme", "job", 0, 2)
        async with asyncio.timeout(120):
            await failed.wait()
        assert [event.action_id for event in kept] == [asked.id]


def test_events_are_of_the_classes_of_their_kinds_with_all_details() -> None:
    with Stage(pretend={"good": lambda _params: 1, "bad": broken}, runs_per_day=2, missed_after_s=10) as stage:
        stage.engine.tenants.create("acme")
        for name in ("good", "bad"):
            stage.engine.scripts.put("acme", name, "export default () => 1")
            stage.engine.run_in("acme", name, 0)
        stage.engine.run_in("acme", "good", 0)
        stage.settle()
        heard = stage.events
        assert {event.kind for event in heard} >= {"started", "finished", "spent"}
        for event in heard:
            _kind, details = get_args(CLASSES[event.kind].__orig_bases__[0])
            assert type(event) is CLASSES[event.kind]
            assert details.__required_keys__ <= set(event.details) <= set(details.__annotations__), event
            assert copy.deepcopy(event) == event
    assert type(Event("", 0)) is Event

"""An attempt that waits for an answer holds no slot; one that computes does, whatever it has asked for."""

import asyncio
import gc
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.egress.peer import Asked, Peer, answer, held_answer, opened, thread_of_peers
from tests.escape.probing import Echo
from tests.node import alone
from tests.node.harness import OK, SETTINGS

from lodger.engine import Engine
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.node.node_events import AttemptFinished
from lodger.engine.node.slots import Slots
from lodger.sandbox import Bundle, Job, Limits, Outcome, Pool
from lodger.sandbox.job import Reply
from lodger.sandbox.workers.worker_run import WorkerRun


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    with thread_of_peers(made):
        yield made


@pytest.fixture
def uncollected_runs() -> Iterator[None]:
    """Of runs that end meanwhile nothing is left that only the collector would free."""

    def left() -> int:
        return sum(isinstance(each, Attempt | Job | WorkerRun) for each in gc.get_objects())

    gc.disable()
    try:
        before = left()
        yield
        assert left() <= before
    finally:
        gc.enable()


@pytest.mark.usefixtures("uncollected_runs")
async def test_more_attempts_wait_than_there_are_slots(tmp_path: Path, peer: Peer) -> None:
    """Nine runs of three tenants wait for one host on a node with a single slot: it answers when all have asked."""
    everyone = threading.Event()
    answers = held_answer(answer(b"at last"), everyone)

    async def held(asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if peer.open == 9:
            everyone.set()
        await answers(asked, reader, writer)

    peer.paths["/held"] = held

    async with Engine.open(str(tmp_path / "l.db"), settings=opened(peer, slots=1)) as engine:
        ended: asyncio.Queue[Event] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        engine.on_event(
            lambda event: loop.call_soon_threadsafe(ended.put_nowait, event) if event.kind == "finished" else None
        )
        for name in "abc":
            limits = {"concurrent_runs": 3, "wall_ms": 60_000}
            await engine.tenants.create(name, grants=[f"fetch:http://127.0.0.1:{peer.port}"], limits=limits)
            await engine.scripts.put(name, "s", f"return (await fetch('{peer.url('/held')}')).status")
        async with engine.node():
            for name in "abcabcabc":
                await engine.run_in(name, "s", 0)
            assert [str((await asyncio.wait_for(ended.get(), 120)).details["outcome"].value) for _ in range(9)] == [
                "ok"
            ] * 9


async def test_a_script_that_computes_beside_its_request_keeps_its_slot(tmp_path: Path, peer: Peer) -> None:
    over = threading.Event()
    peer.paths["/held"] = held_answer(answer(b"at last"), over)

    async with Engine.open(str(tmp_path / "l.db"), settings=opened(peer, slots=1)) as engine:
        heard: asyncio.Queue[Event] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        engine.on_event(lambda event: loop.call_soon_threadsafe(heard.put_nowait, event))
        await engine.tenants.create(
            "busy", grants=[f"fetch:http://127.0.0.1:{peer.port}"], limits={"cpu_ms": 400, "wall_ms": 60_000}
        )
        await engine.tenants.create("other")
        await engine.scripts.put("busy", "s", f"fetch('{peer.url('/held')}'); for (;;);")
        await engine.scripts.put("other", "s", "return 1")
        seen: list[tuple[str, str]] = []
        async with engine.node():
            await engine.run_in("busy", "s", 0)
            while len(seen) < 4:
                event = await asyncio.wait_for(heard.get(), 120)
                if event.kind in ("started", "finished"):
                    seen.append((event.tenant_id or "", event.kind))
                    if len(seen) == 1:
                        await engine.run_in("other", "s", 0)
        over.set()
        assert seen == [("busy", "started"), ("busy", "finished"), ("other", "started"), ("other", "finished")]


class Late:
    """A slot that is had again only after more than the attempt's wall time."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        self.left = asyncio.Event()

    def leave(self, memory_bytes: int) -> None:
        assert memory_bytes >= 0
        self.left.set()

    def take(self) -> None:
        raise AssertionError("the worker sleeps")

    async def enter(self) -> None:
        done = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(self.wait_s, done.set_result, None)
        await done


async def test_the_wall_time_does_not_run_while_an_answer_waits_for_a_slot() -> None:
    pool = Pool(size=1, profile="trusted")
    await pool.start()
    try:
        slot = Late(1.5)

        class Held(Echo):
            async def call(self, name: str, arguments: str) -> Reply:
                await asyncio.wait_for(slot.left.wait(), 60)
                return Reply(ok=True, json="null")

        job = Job(
            Bundle({"main.js": "await Promise.all([kv.get('a'), kv.get('b')]); return 7"}),
            Limits(wall_ms=1000),
            slot=slot,
        )
        report = await pool.run(job, Held())
        assert (report.outcome, report.result) == (Outcome.OK, "7"), report
        assert report.usage.wall_ms < 1500
    finally:
        await pool.stop()


async def test_answers_come_before_new_starts_and_tenants_take_turns() -> None:
    freed: list[int] = []
    slots = Slots(lambda: 1, lambda: freed.append(1))
    order: list[str] = []

    async def back(name: str) -> None:
        await slots.enter(name, name[0])
        order.append(name)

    for name in ("a1", "a2", "a3", "b1"):
        slots.start(name)
        slots.leave(name, 0)
    assert (slots.free, slots.waiting, len(freed)) == (1, 4, 4)
    slots.start("new")
    tasks = [asyncio.create_task(back(name)) for name in ("a1", "a2", "a3", "b1")]
    await asyncio.sleep(0)
    assert slots.free == -4
    tasks[1].cancel()
    await asyncio.gather(tasks[1], return_exceptions=True)
    assert slots.free == -3
    for name in ("new", "a1", "b1", "a3"):
        slots.end(name)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert order == ["a1", "b1", "a3"]
    assert (slots.free, slots.waiting) == (1, 1)  # a2 waits for its answer still
    slots.take("a2")
    assert (slots.free, slots.waiting) == (0, 0)
    slots.end("a2")
    slots.end("a2")
    assert slots.free == 1


async def test_a_claim_counts_on_the_slots_of_attempts_that_end_meanwhile(tmp_path: Path) -> None:
    """As many more as ended during the last transaction, half of the slots at most; without a slot they wait for a moment only."""

    class Held:
        """Executor whose attempts end when the test says so."""

        def __init__(self) -> None:
            self.begun: asyncio.Queue[Claim] = asyncio.Queue()
            self.ends: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

        async def start(self) -> None:
            pass

        async def stop(self) -> None:
            pass

        async def execute(self, claim: Claim) -> Finished:
            self.begun.put_nowait(claim)
            await self.ends[claim.action_id].wait()
            return OK

    script = Held()
    settings = SETTINGS.model_copy(update={"slots": 2})
    async with alone.bench(tmp_path, settings) as made, alone.looping(made, script) as (_loop, attempts):
        ended: asyncio.Queue[AttemptFinished] = asyncio.Queue()
        made.bus.subscribe(AttemptFinished, ended.put_nowait)
        claims = await made.claim(5)
        attempts.begin(claims[:2])
        assert [await script.begun.get(), await script.begun.get()] == claims[:2]
        assert attempts.room().slots == 0
        attempts.claiming = True
        for each in claims[:2]:
            script.ends[each.action_id].set()
            await ended.get()
        assert (attempts.free, attempts.room().slots) == (2, 3)
        attempts.begin(claims[2:])
        assert [await script.begun.get(), await script.begun.get()] == claims[2:4]
        assert (attempts.free, attempts.room().slots) == (-1, 0)
        assert await script.begun.get() == claims[4]  # though no slot is free

"""A node runs modules from the ledger in real walls: slots, steps, limits, code compiled at upload, code that was tampered with."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.databases.fixtures import kind, url
from tests.escape.commands import HELLO, LOOP, command
from tests.escape.standing import status
from tests.node.harness import Signals

from lodger.engine import Engine
from lodger.engine.core.settings import Settings
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.node.node import Node
from lodger.engine.store.records import Action
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.wasm.pool import WasmPool

__all__ = ["kind", "url"]

LENGTH = command("(call $say (call $in (i32.const 4096)))")


class World:
    """An engine with one tenant, a node at work, and the pool of modules behind it."""

    def __init__(self, engine: Engine, node: Node, executor: SandboxExecutor) -> None:
        self.engine = engine
        self.signals = Signals(engine)
        self.node = node
        self.executor = executor
        self.ended = 0

    async def run(self, script: str, params: object = None, tenant: str = "acme") -> Action:
        asked = await self.engine.run_in(tenant, script, 0, params)
        self.ended += 1
        await self.signals.wait("finished", self.ended)
        return await self.engine.actions.get(None, asked.id)

    async def modules(self) -> WasmPool:
        return await self.executor.pool.for_modules()


@asynccontextmanager
async def at_work(url: str, folder: Path, **options: object) -> AsyncIterator[World]:
    settings = Settings(sqlite_synchronous="NORMAL", min_interval_s=1, poll_s=0.05, cache_dir=folder, **options)  # type: ignore[arg-type]  # as given
    baked = artefact.ensure().module.parent  # two seconds of work that each test's own cache need not repeat
    if not (folder / baked.name).exists():
        shutil.copytree(baked, folder / baked.name)
    async with Engine.open(url, settings=settings) as engine:
        executor = SandboxExecutor.of(engine.inner.host, workers=1)
        if not await engine.tenants.list():
            await engine.tenants.create("acme")
        async with engine.node(executor, "n1") as node:
            yield World(engine, node, executor)


def test_a_module_runs_with_its_input_and_its_lines_are_kept(url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with at_work(url, tmp_path) as world:
            await world.engine.scripts.put("acme", "m", HELLO)
            done = await world.run("m", {"name": "Kim", "n": [1, 2.5, None, "ä"]})
            assert (done.state, done.outcome, done.script_version) == ("done", Outcome.OK, 1)
            assert done.result == {"name": "Kim", "n": [1, 2.5, None, "ä"]}
            assert [line.text for line in await world.engine.actions.logs(None, done.id)] == ["hello", "world"]
            (attempt,) = await world.engine.actions.attempts(None, done.id)
            assert attempt.usage.cpu_ms > 0
            assert (await world.modules()).compiler.compiled == 0, "it was compiled when it was stored"
            assert (await world.run("m")).result is None

    asyncio.run(scenario())


def test_slots_of_a_schedule(url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with at_work(url, tmp_path) as world:
            await world.engine.scripts.put("acme", "m", LENGTH)
            await world.engine.schedules.create("acme", "s", script="m", rules="every 1s", params="12345")
            await world.signals.wait("finished", 2)
            done = [each for each in await world.engine.actions.list("acme") if each.state == "done"]
            assert len(done) >= 2
            assert {each.result for each in done} == {7}

    asyncio.run(scenario())


def test_steps_of_both_kinds_hand_on_their_results(url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with at_work(url, tmp_path) as world:
            put = world.engine.scripts.put
            await put("acme", "make", "export default ({ action }) => 'x'.repeat(action.input)")
            await put("acme", "measure", LENGTH)
            await put("acme", "tell", "export default ({ action }) => ({ length: action.input })")
            await world.engine.schedules.create(
                "acme", "s", script=["make", "measure", "tell"], rules="every 31536000s", params=10
            )
            asked = await world.engine.actions.run_now("acme", "s")

            async def over() -> bool:
                return (await world.engine.actions.get(None, asked.id)).state == "done"

            await world.signals.until(over)
            assert (await world.engine.actions.get(None, asked.id)).result == {"length": 12}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("module", "outcome"),
    [(LOOP, Outcome.CPU_LIMIT), (command("unreachable"), Outcome.SCRIPT_ERROR), (HELLO, Outcome.OK)],
    ids=["loop", "trap", "hello"],
)
def test_limits_and_faults_are_the_tenants(url: str, tmp_path: Path, module: bytes, outcome: Outcome) -> None:
    async def scenario() -> None:
        async with at_work(url, tmp_path) as world:
            await world.engine.tenants.create("tight", limits={"cpu_ms": 50})
            await world.engine.scripts.put("tight", "m", module)
            done = await world.run("m", tenant="tight")
            assert done.outcome is outcome
            assert (done.error is None) == (outcome is Outcome.OK)

    asyncio.run(scenario())


def test_a_node_of_the_operators_own_runtime_runs_modules_in_theirs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with at_work(f"sqlite:///{tmp_path}/ledger.db", tmp_path, runtime="quickjs-native") as world:
            await world.engine.scripts.put("acme", "m", HELLO)
            await world.engine.scripts.put("acme", "s", "export default () => 2")
            assert [(await world.run(name, 1)).result for name in ("m", "s", "m")] == [1, 2, 1]

    asyncio.run(scenario())


def test_one_tenants_code_serves_no_other_and_a_dry_run_leaves_nothing(url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with at_work(url, tmp_path) as world:
            await world.engine.tenants.create("zeta")
            for tenant in ("acme", "zeta"):
                await world.engine.scripts.put(tenant, "m", HELLO)
            folders = [path for path in (tmp_path / "modules").iterdir() if path.is_dir()]
            assert len(folders) == 2
            ended = await world.engine.scripts.dry_run("zeta", "m", [3])
            assert (ended.outcome, ended.result) == (Outcome.OK, [3])
            assert await world.engine.actions.list("zeta") == []
            assert (await world.run("m", [4], "zeta")).result == [4]

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["changed", "gone", "another's", "another key", "writable by others"])
def test_code_that_somebody_touched_is_made_anew(tmp_path: Path, how: str) -> None:
    async def scenario() -> None:
        async with at_work(f"sqlite:///{tmp_path}/ledger.db", tmp_path) as world:
            await world.engine.scripts.put("acme", "m", HELLO)
            (code,) = files(tmp_path)
            if how == "changed":
                content = bytearray(code.read_bytes())
                content[len(content) // 2] ^= 1
                code.write_bytes(content)
            elif how == "gone":
                code.unlink()
            elif how == "another's":
                await world.engine.scripts.put("acme", "m", LENGTH)
                (other,) = set(files(tmp_path)) - {code}
                code.write_bytes(other.read_bytes())
                await world.engine.scripts.put("acme", "m", HELLO)
            elif how == "another key":
                (tmp_path / "modules" / "key").write_bytes(os.urandom(32))
            else:
                code.chmod(0o666)
        async with at_work(f"sqlite:///{tmp_path}/ledger.db", tmp_path) as world:
            assert (await world.run("m", [5])).result == [5]
            made_anew = 0 if how == "another's" else 1  # storing it again had put that right
            assert (await world.modules()).compiler.compiled == made_anew

    asyncio.run(scenario())


def files(folder: Path) -> list[Path]:
    return [path for path in (folder / "modules").rglob("*") if path.is_file() and path.name != "key"]


def test_a_killed_zygote_is_our_fault_and_the_run_is_done_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with at_work(f"sqlite:///{tmp_path}/ledger.db", tmp_path) as world:
            await world.engine.tenants.create("slow", limits={"cpu_ms": 20_000, "wall_ms": 60_000})
            await world.engine.scripts.put("slow", "m", LOOP)
            await world.engine.scripts.put("acme", "m", HELLO)
            asked = await world.engine.run_in("slow", "m", 0)
            await world.signals.wait("started")
            pool = await world.modules()

            def armed() -> bool:
                workers = pool.zygote.workers.values() if pool.zygote else ()
                return any(status(worker.pid).get("Seccomp_filters") == "2" for worker in workers)

            async with asyncio.timeout(120):
                while not armed():  # noqa: ASYNC110 - the pool has no event for it, and needs none
                    await asyncio.sleep(0.01)
            assert pool.zygote is not None
            os.kill(pool.zygote.launcher_pid, signal.SIGKILL)

            async def tried_again() -> bool:
                return (await world.engine.actions.get(None, asked.id)).attempt > 1

            await world.signals.until(tried_again)
            first = (await world.engine.actions.attempts(None, asked.id))[0]
            assert first.outcome is Outcome.WORKER_LOST
            await world.engine.actions.cancel(None, asked.id)

    asyncio.run(scenario())

"""A node runs modules from the ledger in real walls: slots, steps, limits, code compiled at upload, code that was tampered with."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.databases.fixtures import kind, url
from tests.escape.commands import command
from tests.node.harness import Signals

from lodger.engine import Engine
from lodger.engine.core.settings import Settings
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.node.node import Node
from lodger.engine.store.records import Action
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

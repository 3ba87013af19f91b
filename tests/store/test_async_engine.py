"""The asynchronous engine: coroutine functions, lanes for what is slow, and a loop that nothing blocks."""

import asyncio
from pathlib import Path

from lodger import AsyncEngine
from lodger.engine.core.settings import Settings

SLOW = "export default async () => { await new Promise((done) => setTimeout(done, 1500)); return 1 }"


def opened(tmp_path: Path) -> AsyncEngine:
    return AsyncEngine.open(str(tmp_path / "ledger.db"), settings=Settings(profile="trusted"))


def test_slow_calls_of_a_tenant_delay_no_quick_one_and_no_other_tenants_slow_one(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path) as engine:
            for tenant in ("one", "two"):
                await engine.tenants.create(tenant)
                await engine.scripts.put(tenant, "slow", SLOW if tenant == "one" else "export default () => 2")
            slow = [asyncio.create_task(engine.scripts.dry_run("one", "slow")) for _ in range(6)]
            assert (await engine.tenants.get("two")).id == "two"
            assert not any(task.done() for task in slow)
            assert (await engine.scripts.dry_run("two", "slow")).outcome == "ok"
            assert not all(task.done() for task in slow)
            assert {(await task).outcome for task in slow} == {"ok"}

    asyncio.run(asyncio.wait_for(go(), 150))


def test_closing_waits_without_blocking_the_loop(tmp_path: Path) -> None:
    async def go() -> None:
        engine = opened(tmp_path)
        await engine.tenants.create("one")
        await engine.scripts.put("one", "slow", SLOW)
        running = asyncio.create_task(engine.scripts.dry_run("one", "slow"))
        await asyncio.sleep(0.05)
        closing = asyncio.create_task(engine.close())
        for _ in range(5):
            await asyncio.sleep(0.001)
        assert not closing.done(), "the loop goes on while the dry run does"
        await closing
        assert (await running).outcome == "ok"

    asyncio.run(asyncio.wait_for(go(), 150))

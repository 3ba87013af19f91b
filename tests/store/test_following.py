"""What an open ledger tells as it happens: an action with its log until it is over, a tenant's actions from now on."""

import asyncio
from pathlib import Path

import pytest

from lodger.engine.aio import Engine as AsyncEngine
from lodger.engine.core.errors import NotFound
from lodger.engine.store.records import Action

TALKS = 'export default () => { console.log("one"); console.log("two"); return 7; }'


async def test_the_async_engine_has_the_same_name_for_it(tmp_path: Path) -> None:
    """It ends with its action, tells of others, and leaves no waiting thread when the last listener is gone."""

    async with AsyncEngine.open(str(tmp_path / "ledger.db")) as engine:
        await engine.tenants.create("acme")
        await engine.scripts.put("acme", "job", TALKS)
        asked = await engine.run_in("acme", "job", "1h")
        reported = engine.live("acme", asked.id)
        first = await anext(reported)
        assert isinstance(first, Action)
        assert first.state == "ready"
        everything = engine.live("acme")
        next_one = asyncio.ensure_future(anext(everything))
        for _ in range(3):  # what is there when it begins is not told
            await asyncio.wait({next_one}, timeout=0.1)
        await engine.actions.cancel(None, asked.id)
        assert [each.state async for each in reported if isinstance(each, Action)] == ["cancelled"]
        while not next_one.done():
            await engine.run_in("acme", "job", "2h")
            await asyncio.wait({next_one}, timeout=0.5)
        assert next_one.result().tenant_id == "acme"  # type: ignore[union-attr]  # it is an action
        await everything.aclose()
        with pytest.raises(NotFound):
            await anext(engine.live("nobody"))

"""What an open ledger tells as it happens: an action with its log until it is over, a tenant's actions from now on."""

import asyncio
import threading
from pathlib import Path

import pytest
from tests.e2e.ready import lodger

from lodger.engine.aio import Engine as AsyncEngine
from lodger.engine.core.errors import NotFound
from lodger.engine.store.records import Action
from lodger.engine.sync import Engine
from lodger.engine.testing import Stage

TALKS = 'export default () => { console.log("one"); console.log("two"); return 7; }'


def test_a_tenants_actions_from_now_on() -> None:
    with Stage(pretend={"job": lambda _params: 1}) as stage:
        for tenant in ("acme", "zeta"):
            stage.engine.tenants.create(tenant)
            stage.engine.scripts.put(tenant, "job", TALKS)
        stage.engine.run_in("acme", "job", "1h")
        seen: list[str] = []
        reported, done = stage.engine.live("acme"), threading.Event()

        def listen() -> None:
            for each in reported:
                assert isinstance(each, Action)
                seen.append(f"{each.tenant_id} {each.state}")
                if each.state == "done":
                    done.set()
                    return

        listening = threading.Thread(target=listen)
        listening.start()
        while not done.is_set():
            for tenant in ("zeta", "acme"):
                stage.engine.run_in(tenant, "job", 0)
            stage.settle()
            done.wait(0.1)
        listening.join()
        reported.close()  # type: ignore[attr-defined]  # it is a generator
        assert {each.partition(" ")[0] for each in seen} == {"acme"}


def test_the_async_engine_has_the_same_name_for_it(tmp_path: Path) -> None:
    """It ends with its action, tells of others, and leaves no waiting thread when the last listener is gone."""

    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_the_command_line_follows(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    with Stage(database=str(place)) as stage:
        stage.engine.tenants.create("acme")
        stage.engine.scripts.put("acme", "job", TALKS)
        asked = stage.engine.run_in("acme", "job", 0)
        stage.settle()
    said = lodger("action", "follow", "acme", asked.id, "--db", place)
    assert said.code == 0
    assert "info: one" in said.out
    assert "job  done in" in said.out
    assert asked.id[-8:] in said.out
    assert lodger("action", "follow", "acme", "nothing", "--db", place).code == 1
    with Engine.open(str(place)) as engine:
        assert engine.actions.get(None, asked.id).state == "done"

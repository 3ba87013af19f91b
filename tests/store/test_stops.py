"""Stop switches: a suspended script starts no action for any of its tenants, a paused node claims none, and both say so."""

import asyncio
from pathlib import Path

import pytest
from tests.node.harness import Script
from tests.store.bench import Bench

from lodger.engine import Engine as AsyncEngine
from lodger.engine.cli.readiness import Check, checks
from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import PLATFORM
from lodger.engine.core.settings import Settings
from lodger.engine.store.platform import node_rows


def _overdue_reasons(bench: Bench) -> set[str]:
    return {each.why for each in bench.engine.actions.overdue(grace_s=0)}


def test_a_suspended_script_stops_at_once_and_the_tenants_other_scripts_run(bench: Bench) -> None:
    bench.tenant()
    bench.engine.scripts.put("acme", "other", "export default () => 2")
    bench.schedule(overlap="queue_all")
    bench.clock.advance(60)
    bench.tick()
    (running,) = bench.claim()
    assert bench.engine.scripts.suspend("acme", "job").state == "suspended"
    assert [each.state for each in bench.actions()] == ["ready"], "the running attempt is taken back, without a fault"
    assert bench.commit(running).lost == (running,)
    bench.engine.run_in("acme", "job", 0)
    bench.engine.run_in("acme", "other", 0)
    bench.clock.advance(60)
    bench.renew()
    bench.tick()
    assert [each.script_name for each in bench.claim()] == ["other"]
    assert "script_suspended" in _overdue_reasons(bench)
    assert [each.state for each in bench.engine.scripts.list("acme")] == ["suspended", "active"]
    assert bench.engine.scripts.resume("acme", "job").state == "active"
    assert {each.script_name for each in bench.claim()} == {"job"}
    assert [each.verb for each in bench.engine.audit.list("acme", verb="scripts.")][:2] == [
        "scripts.resume",
        "scripts.suspend",
    ]


def test_a_suspended_script_of_the_platforms_stops_for_every_tenant(bench: Bench) -> None:
    bench.tenant("acme")
    bench.tenant("other")
    bench.engine.scripts.put(PLATFORM, "cleanup", "export default () => 1", offered=True)
    for tenant in ("acme", "other"):
        bench.engine.run_in(tenant, "@cleanup", 0)
    bench.engine.run_in("acme", "job", 0)
    bench.engine.scripts.suspend(PLATFORM, "cleanup")
    assert [each.script_name for each in bench.claim()] == ["job"]
    bench.clock.advance(1)
    assert _overdue_reasons(bench) == {"script_suspended"}
    bench.engine.scripts.resume(PLATFORM, "cleanup")
    assert {each.tenant_id for each in bench.claim()} == {"acme", "other"}


def test_a_paused_node_claims_nothing_and_another_does(bench: Bench) -> None:
    bench.tenant()
    bench.lease("a")
    assert bench.engine.nodes.pause("a").state == "paused"
    bench.engine.run_in("acme", "job", 0)
    bench.clock.advance(1)
    assert bench.renew("a"), "it keeps its lease"
    assert bench.claim(node="a") == []
    assert _overdue_reasons(bench) == {"node_paused"}
    bench.lease("b")
    for held, reasons in (("its clock is wrong", {"node_clock"}), (None, {"slots"})):
        with bench.engine.context.database.write() as connection:
            node_rows.set_held(connection, bench.nodes["b"].node_id, held)
        assert _overdue_reasons(bench) == reasons
    assert len(bench.claim(node="b")) == 1
    assert [each.state for each in bench.engine.nodes.list()] == ["paused", "alive"]
    assert bench.engine.nodes.resume("a").state == "alive"
    bench.engine.run_in("acme", "job", 0)
    assert len(bench.claim(node="a")) == 1
    (entry,) = bench.engine.audit.list(verb="nodes.pause")
    assert (entry.before, entry.after) == ({"name": "a", "state": "alive"}, {"name": "a", "state": "paused"})


async def test_a_name_of_two_nodes_is_refused_and_an_id_is_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(sqlite_synchronous="NORMAL", poll_s=0.05)
    place = str(tmp_path / "l.db")
    async with AsyncEngine.open(place, settings=settings) as engine, engine.node(Script(), name="n1"):
        assert "is called n1, too" not in caplog.text
        async with AsyncEngine.open(place, settings=settings) as other, other.node(Script(), name="n1"):
            assert "another node is called n1, too" in caplog.text
            rows = await engine.nodes.list()
            assert [each.name for each in rows] == ["n1", "n1"]
            for verb in (engine.nodes.pause, engine.nodes.resume):
                with pytest.raises(InputError) as refused:
                    await verb("n1")
                assert refused.value.code == "node_ambiguous"
                assert all(each.id in refused.value.why for each in rows)
            assert (await engine.nodes.pause(rows[0].id)).id == rows[0].id
            states = {each.id: each.state for each in await engine.nodes.list()}
            assert states == {rows[0].id: "paused", rows[1].id: "alive"}
            found = {each.name: each for each in await asyncio.to_thread(readiness, place)}
            assert (found["nodes"].state, "n1" in found["nodes"].value) == ("warn", True)


def readiness(place: str) -> list[Check]:
    return checks(Settings(), {"ok": True, "layers": 6}, place)

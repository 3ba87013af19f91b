"""Shadows in the ledger, on every database: counted once, promoted once, of one tenant alone."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.store.bench import Bench

from lodger.engine.core.errors import NotFound
from lodger.engine.features.replays.agreement import ShadowRun
from lodger.engine.features.shadows import shadows
from lodger.engine.vault.keyring import Keyring

RUN = ShadowRun("a", 0, None, "agrees", "", "ok", "ok", 1.5, 1.25)


def test_two_nodes_count_each_run_once_and_promote_once(bench: Bench, tmp_path: Path) -> None:
    Keyring(tmp_path / "keys").add()
    engine, context = bench.engine, bench.engine.context
    for tenant in ("acme", "other"):
        engine.tenants.create(tenant)
        engine.scripts.put(tenant, "job", "export default () => 1", force=True)
    engine.scripts.put("acme", "job", "export default () => 2", force=True, shadow=6, promote_when_agreed=True)
    engine.webhooks.put("acme", "ci", "https://ci.example/in", events=["lodger.script.shadow"])
    engine.webhooks.put("acme", "all", "https://all.example/in", events=["*"])
    with context.database.read() as connection:
        ((key, (shadow, live)),) = shadows.running(connection, ["acme", "other"]).items()
        assert (key, live) == (("acme", "job"), 1)
        assert shadows.load(connection, "other", shadow) is None
        found = shadows.load(connection, "acme", shadow)
    engine.scripts.suspend("acme", "job")
    with context.database.read() as connection:
        assert shadows.load(connection, "acme", shadow) is None, "a suspended script's shadow stops too"
    engine.scripts.resume("acme", "job")
    assert found == {"main.js": "export default () => 2"}
    states: list[str | None] = []

    def node(difference: str) -> None:
        for number in range(6):
            with context.database.write() as connection:
                run = replace(RUN, action_id=str(number), difference=difference)
                added = shadows.add(context, connection, "acme", shadow, run, 1.0)
                states.append(added and added.state)

    with context.database.write() as connection:
        assert shadows.add(context, connection, "other", shadow, RUN, 1.0) is None
        shadows.miss(connection, [("other", shadow, 5), ("acme", shadow, 2)])
    nodes = [threading.Thread(target=node, args=(name,)) for name in ("\x00\ud800\"'", "two")]
    for each in nodes:
        each.start()
    for each in nodes:
        each.join()
    assert sorted(map(str, states)) == ["None"] * 6 + ["promoted"] + ["running"] * 5
    after = engine.scripts.shadow("acme", "job")
    assert (after.state, after.agreed, after.missed, {each.action_id for each in after.runs}) == (
        "promoted", 6, 2, set("012345"),
    )  # fmt: skip
    assert [engine.scripts.get(each, "job").version for each in ("acme", "other")] == [2, 1]
    assert len(engine.audit.list("acme", verb="scripts.promote")) == 1
    assert engine.tenants.usage("acme").days[-1].cpu_s == pytest.approx(0.012)
    assert engine.tenants.usage("other").days[-1].cpu_s == pytest.approx(0.001)
    with context.database.read() as connection:
        ((target, payload),) = connection.exec_driver_sql("SELECT target, payload FROM lodger_outbox").all()
    assert (target, json.loads(payload)) == ("ci", {"type": "lodger.script.shadow", "data": {
        "tenant": "acme", "script": "job", "version": 2, "live_version": 1, "state": "promoted", "agreed": 6, "differed": 0,
        "undecided": 0, "missed": 2,
    }})  # fmt: skip
    engine.scripts.drop("acme", "job")
    engine.scripts.put("acme", "job", "export default () => 3", force=True, shadow=1)
    engine.tenants.delete("acme")
    with context.database.read() as connection, pytest.raises(NotFound):
        shadows.get(connection, engine.scripts.get("acme", "job"))

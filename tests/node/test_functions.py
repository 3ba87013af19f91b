"""A run that calls a function of the platform waits for a node that has it."""

from pathlib import Path

from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine

SETTINGS = Settings(profile="trusted", check_scripts=False)


def test_a_run_waits_for_a_node_that_has_the_function(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Engine.open(place, settings=SETTINGS) as platform, Engine.open(place, settings=SETTINGS) as bare:
        platform.function("crm.score", params={"id": {"type": "integer"}})(lambda call: call.params["id"] + 1)
        platform.tenants.create("acme", grants=["functions"])
        platform.scripts.put("acme", "job", "export default ({ crm }) => crm.score(7)")
        with bare.node():
            waiting = bare.run_in("acme", "job", 0)
            for change in bare.live("acme", waiting.id):
                if getattr(change, "requires", ()):
                    break
        found = bare.actions.get("acme", waiting.id)
        assert (found.state, found.requires) == ("ready", ("set:crm.score",))
        with platform.node():
            for change in platform.live("acme", waiting.id):
                if getattr(change, "state", "") in {"done", "failed"}:
                    break
        assert platform.actions.get("acme", waiting.id).result == 8

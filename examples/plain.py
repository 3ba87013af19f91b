"""A plain script: make a tenant, bind a script to a rule, work until it has run twice, tell what happened.

python examples/plain.py [LEDGER]
"""

import sys
import tempfile
import threading

from lodger.engine.core.events import Event
from lodger.engine.sync import Engine

SCRIPT = "export default ({ action }) => `${action.input} at ${action.slot}`;"


def main(ledger: str) -> None:
    """Run a script every second, twice."""
    twice = threading.Semaphore(0)

    def hear(event: Event) -> None:
        if event.kind == "finished":
            twice.release()

    with Engine.open(ledger) as engine:
        engine.tenants.create("acme", limits={"min_interval_s": 1})
        engine.scripts.put("acme", "greet", SCRIPT)
        schedule = engine.schedules.create("acme", "often", script="greet", rules="every 1s", params="hello")
        print(schedule.text)  # noqa: T201 - an example talks
        engine.on_event(hear)
        with engine.node():
            for _ in range(2):
                twice.acquire(timeout=30)
        for action in engine.actions.list("acme", state="done"):
            print(action.result)  # noqa: T201 - an example talks


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(sys.argv[1] if len(sys.argv) > 1 else f"{place}/ledger.db")

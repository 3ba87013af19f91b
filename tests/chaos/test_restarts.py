"""Rolling restarts: no slot waits for the end of a lease."""

from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import text
from tests.chaos import processes
from tests.chaos.processes import Start, counts, states, until

from lodger.engine.sync import Engine

engine, start = processes.engine, processes.start


@pytest.mark.parametrize(
    "kind", ["postgresql"], indirect=True
)  # several nodes on one file: tests/chaos/test_processes.py
def test_nodes_are_restarted_one_after_the_other_and_no_slot_waits(engine: Engine, start: Start) -> None:
    """No slot waits for the end of a stopped node's lease: its action would have a lost attempt, and a second one."""
    living = [start("a0", "race"), start("b0", "race")]
    made = [
        engine.schedules.create("acme", f"s{number}", script="job", rules="every 1s", overlap="allow")
        for number in range(4)
    ]
    until(lambda: states(engine).get("done", 0) >= 8, 60)
    for name in ("a1", "b1"):
        # As in a deployment, the new process is up before the old one is stopped.
        living.append(start(name, "race"))
        leaving = living.pop(0)
        leaving.terminate()
        assert leaving.wait(60) == 0
        done = states(engine).get("done", 0)
        until(lambda done=done: states(engine).get("done", 0) >= done + 8, 60)  # type: ignore[misc]  # bound now
    for each in made:
        engine.schedules.pause("acme", each.name)
    until(lambda: set(states(engine)) == {"done"}, 60)
    for each in made:
        slots = sorted(action.slot for action in engine.actions.list("acme", each.id, limit=10_000) if action.slot)
        assert [after - before for before, after in pairwise(slots)] == [timedelta(seconds=1)] * (len(slots) - 1)
    assert set(counts(engine, "SELECT outcome, count(*) FROM lodger_attempts GROUP BY outcome")) == {"ok"}
    assert set(counts(engine, "SELECT attempt, count(*) FROM lodger_actions GROUP BY attempt")) == {1}
    with engine.context.database.read() as connection:
        nodes = connection.execute(text("SELECT name, state FROM lodger_nodes")).all()
    assert {row[0]: row[1] for row in nodes} == {"a0": "stopped", "b0": "stopped", "a1": "alive", "b1": "alive"}

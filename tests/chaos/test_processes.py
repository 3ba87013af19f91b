"""Real engine processes that race on one ledger."""

import pytest
from tests.chaos import processes
from tests.chaos.processes import Start, add_ready_actions, check_done_once, counts, states, until

from lodger.engine.sync import Engine

engine, start = processes.engine, processes.start


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # on PostgreSQL: tests/chaos/test_havoc.py
def test_two_processes_race_over_many_actions_and_complete_each_exactly_once(engine: Engine, start: Start) -> None:
    start("one", "race")
    start("two", "race")
    shares: dict[str, int] = {}
    for wave in range(1, 7):  # if a disk stalls, one process may run a whole wave: that was no race
        number = wave * 150
        add_ready_actions(engine, 150)
        until(lambda number=number: states(engine) == {"done": number}, 60)
        check_done_once(engine, number)
        shares = counts(engine, "SELECT name, count(*) FROM effects_seen GROUP BY name")
        if len(shares) == 2:
            break
    assert set(shares) == {"one", "two"}, "only one of them worked: that was no race"

"""Real engine processes on one ledger: racing, killed in the middle, started again."""

import random

import pytest
from tests.chaos import processes
from tests.chaos.processes import Start, add_ready_actions, check_done_once, counts, states, until

from lodger.engine.sync import Engine

engine, start = processes.engine, processes.start


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # on PostgreSQL: tests/chaos/test_havoc.py
def test_processes_are_killed_at_random_and_started_again(engine: Engine, start: Start) -> None:
    chance = random.Random(7)
    living = [start("a", "mortal"), start("b", "mortal")]
    add_ready_actions(engine, 150)
    for number in (1, 2):
        until(lambda number=number: states(engine).get("done", 0) >= 40 * number, 60)  # type: ignore[misc]  # bound now
        victim = living.pop(chance.randrange(len(living)))
        victim.kill()
        victim.wait()
        living.append(start(f"again-{number}", "mortal"))
    until(lambda: states(engine) == {"done": 150}, 60)
    check_done_once(engine, 150)

"""Real engine processes on one ledger: racing, killed in the middle, started again."""

import random
import signal

import pytest
from tests.chaos import processes
from tests.chaos.processes import Start, add_ready_actions, check_done_once, counts, states, until

from lodger.engine.sync import Engine
from lodger.sandbox.outcome import Outcome

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


def test_a_process_killed_in_the_middle_of_an_attempt_the_slot_runs_again_after_the_lease(
    engine: Engine, start: Start
) -> None:
    asked = engine.run_in("acme", "job", 0)
    hanging = start("hangs", "hang")
    assert hanging.stdout.readline().split() == ["hanging", asked.id]
    hanging.send_signal(signal.SIGKILL)
    hanging.wait()
    assert states(engine) == {"running": 1}
    start("rescues", "mortal")
    until(lambda: states(engine) == {"done": 1}, 30)
    outcomes = [attempt.outcome for attempt in engine.actions.attempts(None, asked.id)]
    assert outcomes == [Outcome.WORKER_LOST, Outcome.OK]
    check_done_once(engine, 1)


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

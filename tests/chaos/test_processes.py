"""Real engine processes on one ledger: racing, killed in the middle, started again."""

import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.chaos import engine_process, leash
from tests.traces import TABLE

from lodger.engine.core.clock import SystemClock
from lodger.engine.store.schema.scheduling import actions
from lodger.engine.sync import Engine
from lodger.sandbox.outcome import Outcome

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    with Engine.open(url, settings=engine_process.SETTINGS) as engine:
        furnish(engine)
        yield engine


def furnish(engine: Engine) -> None:
    """Create a tenant, a script and the table of effects."""
    engine.tenants.create("acme", limits={"concurrent_runs": 1000})
    engine.scripts.put("acme", "job", "export default () => 1")
    with engine.context.database.write() as connection:
        TABLE.create(connection)


@pytest.fixture
def start(url: str) -> Iterator[Start]:
    begun: list[subprocess.Popen[str]] = []

    def begin(name: str, mode: str = "work", through: str | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            leash.python("-m", "tests.chaos.engine_process", through or url, name, mode),
            stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        begun.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "up"
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def fill(engine: Engine, number: int) -> None:
    now = engine.context.clock.now_us()
    script = engine.scripts.get("acme", "job")
    with engine.context.database.write() as connection:
        rows = [
            {"tenant_id": "acme", "id": engine.context.ids.new(), "origin": "once", "slot": now, "due_at": now,
             "state": "ready", "script_id": script.script_id, "script_version": 1}
            for _ in range(number)
        ]  # fmt: skip
        connection.execute(actions.insert(), rows)
        connection.exec_driver_sql("UPDATE lodger_turns SET startable_at = 0")


def counts(engine: Engine, statement: str) -> dict[str, int]:
    with engine.context.database.read() as connection:
        return {row[0]: row[1] for row in connection.execute(text(statement))}


def states(engine: Engine) -> dict[str, int]:
    return counts(engine, "SELECT state, count(*) FROM lodger_actions GROUP BY state")


def until(condition: Callable[[], bool], seconds: float) -> None:
    """Poll until a condition holds; a busy machine gets five times as long."""
    clock = SystemClock()
    end = clock.elapsed_s() + 5 * seconds
    pause = subprocess.Popen(["sleep", str(5 * seconds)])
    try:
        while not condition():
            assert clock.elapsed_s() < end, "the ledger never got there"
            try:
                pause.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
    finally:
        pause.kill()
        pause.wait()


def audit(engine: Engine, number: int) -> None:
    assert states(engine) == {"done": number}
    twice = counts(engine, "SELECT id, count(*) FROM effects_seen GROUP BY id HAVING count(*) <> 1")
    assert not twice, "effects that happened twice"
    with engine.context.database.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM effects_seen")) == number
        good = connection.scalar(text("SELECT count(*) FROM lodger_attempts WHERE outcome = 'ok'"))
    assert good == number


def test_two_processes_race_over_many_actions_and_complete_each_exactly_once(engine: Engine, start: Start) -> None:
    start("one", "race")
    start("two", "race")
    shares: dict[str, int] = {}
    for wave in range(1, 7):  # if a disk stalls, one process may run a whole wave: that was no race
        number = wave * 400
        fill(engine, 400)
        until(lambda number=number: states(engine) == {"done": number}, 60)
        audit(engine, number)
        shares = counts(engine, "SELECT name, count(*) FROM effects_seen GROUP BY name")
        if len(shares) == 2:
            break
    assert set(shares) == {"one", "two"}, "only one of them worked: that was no race"


def test_a_process_killed_in_the_middle_of_an_attempt_the_slot_runs_again_after_the_lease(
    engine: Engine, start: Start
) -> None:
    asked = engine.run_in("acme", "job", 0)
    hanging = start("hangs", "hang")
    assert hanging.stdout is not None
    assert hanging.stdout.readline().split() == ["hanging", asked.id]
    hanging.send_signal(signal.SIGKILL)
    hanging.wait()
    assert states(engine) == {"running": 1}
    start("rescues")
    until(lambda: states(engine) == {"done": 1}, 30)
    outcomes = [attempt.outcome for attempt in engine.actions.attempts(None, asked.id)]
    assert outcomes == [Outcome.WORKER_LOST, Outcome.OK]
    audit(engine, 1)


def test_a_stopped_process_hands_back_what_it_held_without_waiting_for_the_lease(engine: Engine, start: Start) -> None:
    asked = engine.run_in("acme", "job", 0)
    hanging = start("hangs", "hang")
    assert hanging.stdout is not None
    assert hanging.stdout.readline().split() == ["hanging", asked.id]
    hanging.terminate()
    assert hanging.wait(120) == 0
    assert states(engine) == {"ready": 1}
    assert engine.actions.get(None, asked.id).outcome is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # on PostgreSQL: tests/chaos/test_havoc.py
def test_processes_are_killed_at_random_and_started_again(engine: Engine, start: Start) -> None:
    chance = random.Random(7)
    living = [start("a", "mortal"), start("b", "mortal")]
    fill(engine, 400)
    for number in (1, 2):
        until(lambda number=number: states(engine).get("done", 0) >= 100 * number, 60)  # type: ignore[misc]  # bound now
        victim = living.pop(chance.randrange(len(living)))
        victim.kill()
        victim.wait()
        living.append(start(f"again-{number}", "mortal"))
    until(lambda: states(engine) == {"done": 400}, 60)
    audit(engine, 400)

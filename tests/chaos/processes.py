"""Engine processes of a test on one ledger, and questions about the ledger."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.chaos import engine_process
from tests.chaos.child_processes import Child
from tests.chaos.cluster import pause
from tests.traces import TABLE

from lodger.engine.core.clock import SystemClock
from lodger.engine.store.schema.scheduling import actions
from lodger.engine.sync import Engine

ROOT = Path(__file__).resolve().parents[2]


Start = Callable[..., Child]


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
    begun: list[Child] = []

    def begin(name: str, mode: str = "work", through: str | None = None) -> Child:
        process = Child(
            "tests.chaos.engine_process", through or url, name, mode, env=os.environ | {"PYTHONPATH": str(ROOT)}
        )
        begun.append(process)
        assert process.stdout.readline().strip() == "up"
        return process

    yield begin
    for process in begun:
        process.remove()


def add_ready_actions(engine: Engine, number: int) -> None:
    """Store so many actions that may start at once."""
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
    """Return the rows of a query of names and numbers as a dictionary."""
    with engine.context.database.read() as connection:
        return {row[0]: row[1] for row in connection.execute(text(statement))}


def states(engine: Engine) -> dict[str, int]:
    """Return the number of actions by state."""
    return counts(engine, "SELECT state, count(*) FROM lodger_actions GROUP BY state")


def until(condition: Callable[[], bool], seconds: float) -> None:
    """Poll until a condition holds; a busy machine gets five times as long."""
    clock = SystemClock()
    end = clock.elapsed_s() + 5 * seconds
    while not condition():
        assert clock.elapsed_s() < end, "the ledger never got there"
        pause(0.05)


def check_done_once(engine: Engine, number: int) -> None:
    """Assert that so many actions are done, each with one effect and one successful attempt."""
    assert states(engine) == {"done": number}
    twice = counts(engine, "SELECT id, count(*) FROM effects_seen GROUP BY id HAVING count(*) <> 1")
    assert not twice, "effects that happened twice"
    with engine.context.database.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM effects_seen")) == number
        good = connection.scalar(text("SELECT count(*) FROM lodger_attempts WHERE outcome = 'ok'"))
    assert good == number

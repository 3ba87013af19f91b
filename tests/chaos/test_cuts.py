"""Network failures between a node and the database: resets, blocked traffic, lost replies. No slot is lost, no effect repeated.

Node ``cut`` reaches the server through a relay; node ``relief`` takes over its actions, and the outcomes that ``cut`` knows are never
committed.
"""

import signal
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import text
from tests.chaos import processes
from tests.chaos.child_processes import Child
from tests.chaos.processes import Start, check_done_once, counts, states, until
from tests.databases.fixtures import absent
from tests.databases.fixtures import server_url as url
from tests.databases.relay import Relay

from lodger.engine.store.connection.notify import CHANNEL
from lodger.engine.sync import Engine

__all__ = ["url"]
engine, start = processes.engine, processes.start
pytestmark = [
    pytest.mark.timeout(500),
    pytest.mark.skipif(absent() is not None, reason=f"NOT TESTED on PostgreSQL: {absent()}"),
]
#: Text that occurs only in the transaction that commits an outcome.
EFFECT = b"INSERT INTO effects_seen"


def next_line(process: Child) -> str:
    """Return the next line that a process writes."""
    line = process.stdout.readline()
    assert line, "it ended"
    return line.strip()


def effects_by_name(engine: Engine) -> dict[str, int]:
    """Return the number of effects of each node."""
    return counts(engine, "SELECT name, count(*) FROM effects_seen GROUP BY name")


def is_alive(engine: Engine) -> bool:
    return counts(engine, "SELECT state, count(*) FROM lodger_nodes WHERE name = 'cut' GROUP BY state") == {"alive": 1}


def is_listening(engine: Engine, since: object) -> bool:
    """Return whether ``cut`` has a listening connection newer than a time."""
    asked = text(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cut' AND query LIKE :it AND state_change > :at"
    )
    with engine.context.database.read() as connection:
        return bool(connection.scalar(asked, {"it": f"LISTEN {CHANNEL}%", "at": since}))


def has_every_slot(engine: Engine, schedule: str) -> bool:
    """Whether the slots of a schedule follow each other without a gap."""
    slots = sorted(each.slot for each in engine.actions.list("acme", schedule, limit=10_000) if each.slot)
    return [after - before for before, after in pairwise(slots)] == [timedelta(seconds=1)] * (len(slots) - 1)


def held_action(engine: Engine) -> str:
    """Request runs until ``cut`` runs one, and return its id; on a busy machine it may lose some."""
    where = text(
        "SELECT a.state, n.name FROM lodger_actions a LEFT JOIN lodger_nodes n ON n.id = a.node_id WHERE a.id = :id"
    )
    while True:
        asked = engine.run_in("acme", "job", 0).id

        def now(asked: str = asked) -> tuple[str, str]:
            with engine.context.database.read() as connection:
                row = connection.execute(where, {"id": asked}).one()
            return row.state, row.name

        until(lambda now=now: now()[0] in {"failed", "done"} or now() == ("running", "cut"), 100)  # type: ignore[misc]  # bound now
        if now() == ("running", "cut"):
            return asked


def test_a_node_that_is_cut_off_is_stood_in_for_and_comes_back(
    engine: Engine, start: Start, relay: Relay, name: str
) -> None:
    made = engine.schedules.create("acme", "s", script="job", rules="every 1s", overlap="allow", missed="all")
    cut = start("cut", "keep", relay.url(name, application_name="cut"))
    relief = start("relief", "relief")
    for ways, old in ((None, "pass"), ((), "forget"), (("down",), "reset")):
        asked = held_action(engine)
        relief.send_signal(signal.SIGUSR1)
        assert next_line(relief) == "on"
        if ways is None:
            relay.cut()
        else:
            relay.silence(*ways)
        # It succeeds, but the outcome cannot be committed.
        cut.send_signal(signal.SIGUSR1)
        until(lambda asked=asked: engine.actions.get(None, asked).state in {"done", "failed"}, 100)  # type: ignore[misc]  # bound now
        with engine.context.database.read() as connection:
            name = connection.scalar(text("SELECT name FROM effects_seen WHERE id = :id"), {"id": asked})
            healed = connection.scalar(text("SELECT clock_timestamp()"))
        assert name in {"relief", None}, f"while it was {ways or 'cut'}, it has written what it had lost"
        relay.heal(old)
        until(lambda: is_alive(engine), 100)
        relief.send_signal(signal.SIGUSR1)
        assert next_line(relief) == "off"
        before = effects_by_name(engine).get("cut", 0)
        until(lambda before=before: effects_by_name(engine).get("cut", 0) > before, 100)  # type: ignore[misc]  # bound now
        until(lambda healed=healed: is_listening(engine, healed), 100)  # type: ignore[misc]  # bound now
    engine.schedules.pause("acme", made.name)
    # On a very busy machine an action fails after three lost leases, without an effect.
    until(lambda: set(states(engine)) <= {"done", "failed"}, 100)
    assert not counts(engine, "SELECT id, count(*) FROM effects_seen GROUP BY id HAVING count(*) <> 1")
    assert sum(effects_by_name(engine).values()) == states(engine)["done"]
    assert has_every_slot(engine, made.id)


def test_what_is_lost_on_the_way_is_settled_by_the_ledger_and_a_slow_way_loses_nothing(
    engine: Engine, start: Start, relay: Relay, name: str
) -> None:
    cut = start("cut", "race", relay.url(name))
    for number, loses in enumerate((relay.lose_answer, relay.lose_commit, relay.lose_answer), 1):
        loses(EFFECT)
        for _ in range(5):
            engine.run_in("acme", "job", 0)
        until(lambda number=number: states(engine) == {"done": 5 * number}, 100)  # type: ignore[misc]  # bound now
        assert relay.lost.is_set()
        relay.lost.clear()
    relay.slow(0.02)
    for _ in range(5):
        engine.run_in("acme", "job", 0)
    until(lambda: states(engine) == {"done": 20}, 100)
    check_done_once(engine, 20)
    assert effects_by_name(engine) == {"cut": 20}
    cut.terminate()
    assert "lost" not in cut.stdout.read().split(), "what was written is told as done, whatever became of the answer"


def test_a_node_that_falls_silent_in_the_middle_of_a_commit_keeps_nobody_from_its_work(
    engine: Engine, start: Start, relay: Relay, name: str
) -> None:
    """Its transaction stays open at the server with its locks; it stops waiting when its lease is lost."""
    cut = start("cut", "hold", relay.url(name))
    asked = engine.run_in("acme", "job", 0)
    while next_line(cut) != f"holding {asked.id}":
        continue
    relay.silence_after(EFFECT)
    cut.send_signal(signal.SIGUSR1)
    assert relay.held.wait(60)
    start("relief", "race")
    until(lambda: states(engine) == {"done": 1}, 100)
    assert effects_by_name(engine) == {"relief": 1}
    relay.heal("forget")
    until(lambda: is_alive(engine), 100)
    check_done_once(engine, 1)

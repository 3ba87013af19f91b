"""Statements of an idle node: a few per second, for any number of schedules and tenants; and of a run that comes alone."""

import re
from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from tests.databases.fixtures import name, server
from tests.databases.server import Server
from tests.sim.simulator.plan import Plan, PlannedEvent, Shape, draw_plan
from tests.sim.simulator.world import World

__all__ = ["name", "server"]
pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.timeout(400)]
#: Statements per virtual second, BEGIN included; 52 if each service polled by itself.
MAX_STATEMENTS = 20
#: Statements of a run that comes alone, from its slot to its committed outcome: two transactions with their BEGIN, one row
#: of effects, and what the services look at after a commit.
MAX_LONE_STATEMENTS = 34
#: Seconds between the slots of that schedule.
EVERY_S = 3


def idle(
    tenants: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    blind: bool = False,
    events: tuple[PlannedEvent, ...] = (),
    url: str | None = None,
    count: Callable[[], int] | None = None,
) -> float:
    """Return the statements per second of one node after its start; attempts succeed quickly.

    Args:
        count: returns the statements so far; None for the world's own count, which misses a server's commit watcher.
    """
    shape = Shape(seconds=60, schedules=0, tenants=tenants, nodes=1)
    drawn_one = draw_plan(1, replace(shape, schedules=1, trouble=0))
    settings = drawn_one.settings | {"poll_s": 0.25, "lease_s": 6.0}
    plan = Plan(1, shape, drawn_one.start_us, "UTC", settings, 0.001, events)
    if blind:
        monkeypatch.setattr("lodger.engine.store.connection.database.Database.file_watcher", lambda _self: None)
    with World(plan, url=url) as world:
        begun: list[int] = []
        count = count or (lambda: world.figures["statements"])
        if events:
            world.later(1.0, lambda: setattr(world, "calm", True))
        for at_s in (20.0, 59.0):
            world.later(at_s, lambda: begun.append(count()))
        world.run()
    return (begun[1] - begun[0]) / 39


def test_an_idle_node_asks_little(monkeypatch: pytest.MonkeyPatch) -> None:
    # The second tenant requires a label, which costs a statement more whenever a node looks.
    few, many = idle(2, monkeypatch), idle(120, monkeypatch)
    assert many < MAX_STATEMENTS
    assert many < few * 1.1, "tenants without history cost nothing"


def test_an_idle_node_asks_a_server_little(
    server: Server, name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """What arrived according to the server's log, with BEGIN, COMMIT, and the empty statement that tests a pooled connection."""
    with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
        connection.execute(SQL("ALTER DATABASE {} SET log_statement = 'all'").format(Identifier(name)))
    log = server.folder / "log"
    # All but what the simulator sends for itself. The settings at the beginning of a transaction arrive as one.
    mine = re.compile(r"LOG:  (?:statement|execute [^:]*): (?!DELETE FROM sim_rows)")
    sent = idle(2, monkeypatch, url=server.url(name), count=lambda: len(mine.findall(log.read_text())))
    record_property("statements", sent)
    assert 10 < sent < MAX_STATEMENTS


def test_the_bound_can_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert idle(1, monkeypatch, blind=True) > MAX_STATEMENTS * 1.5


def test_a_run_that_comes_alone_costs_few_statements(
    monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    asked = {
        "tenant": "t0", "name": "s0", "rule": {"kind": "every", "s": EVERY_S}, "owed_s": None, "overlap": "skip", "missed": "latest",
        "script": "job", "retry": None, "jitter_s": 0, "expires_s": 0, "priority": "normal", "pause_after": 0, "labels": "",
        "fuse": None,
    }  # fmt: skip
    runs = idle(1, monkeypatch, events=(PlannedEvent(0.01, "create", asked),))
    statements = (runs - idle(1, monkeypatch)) * EVERY_S
    record_property("statements", statements)
    assert 20 < statements < MAX_LONE_STATEMENTS

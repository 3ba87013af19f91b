"""Statements of an idle node: a few per second, for any number of schedules and tenants."""

from dataclasses import replace

import pytest
from tests.sim.simulator.plan import Plan, Shape, draw_plan
from tests.sim.simulator.world import World

pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.timeout(400)]
#: Statements per virtual second, BEGIN included; 52 if each service polled by itself.
MAX_STATEMENTS = 20


def idle(tenants: int, monkeypatch: pytest.MonkeyPatch, *, blind: bool = False) -> float:
    """Return the statements per second of one node after its start."""
    shape = Shape(seconds=120, schedules=0, tenants=tenants, nodes=1)
    drawn_one = draw_plan(1, replace(shape, schedules=1, trouble=0))
    plan = Plan(1, shape, drawn_one.start_us, "UTC", drawn_one.settings | {"poll_s": 0.25, "lease_s": 6.0}, 0.001, ())
    if blind:
        monkeypatch.setattr("lodger.engine.store.connection.database.Database.file_watcher", lambda _self: None)
    with World(plan) as world:
        begun: list[int] = []
        world.later(20.0, lambda: begun.append(world.figures["statements"]))
        world.later(119.0, lambda: begun.append(world.figures["statements"]))
        world.run()
    return (begun[1] - begun[0]) / 99


def test_an_idle_node_asks_little(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = idle(1, monkeypatch), idle(120, monkeypatch)
    assert many < MAX_STATEMENTS
    assert many < few * 1.1, "tenants without history cost nothing"


def test_the_bound_can_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert idle(1, monkeypatch, blind=True) > MAX_STATEMENTS * 1.5

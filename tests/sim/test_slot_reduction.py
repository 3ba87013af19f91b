"""A node that repeatedly loses its lease claims less, and uses all slots again once renewals succeed."""

from dataclasses import replace

import pytest
from tests.sim.simulator.plan import Plan, PlannedEvent, Shape, draw_plan
from tests.sim.simulator.world import World

pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.timeout(400)]
SLOTS = 16


def plan() -> Plan:
    """Return a plan of one node with transactions that, for ten seconds, take longer than its lease of three seconds."""
    base = draw_plan(1, Shape(seconds=30, schedules=1, tenants=2, nodes=1, trouble=0))
    settings = base.settings | {"slots": SLOTS, "lease_s": 3.0, "poll_s": 0.25, "concurrent_runs": 100}
    slow = PlannedEvent(5.0, "slow", {"node": 0, "by_s": 5.0, "for_s": 10.0})
    return replace(base, settings=settings, job_s=0.001, events=(slow,))


def test_it_holds_less_for_a_while() -> None:
    with World(plan()) as world:
        held: list[tuple[float, int]] = []

        def look() -> None:
            node = world.machines[0].node
            assert node is not None
            held.append((world.loop.time(), node.attempts.slots))
            world.later(0.25, look)

        world.later(0.25, look)
        world.run()
    before = {slots for at_s, slots in held if at_s < 5}
    after = [slots for at_s, slots in held if at_s > 29]
    assert before == {SLOTS}
    assert min(slots for _at_s, slots in held) <= SLOTS // 2, held
    assert set(after) == {SLOTS}, "and all of it again"

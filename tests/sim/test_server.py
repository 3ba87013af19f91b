"""Some worlds on PostgreSQL, where the statements differ."""

import pytest
from tests.databases.fixtures import kind, url
from tests.sim.simulator.plan import Shape, draw_plan
from tests.sim.simulator.proof import play

__all__ = ["kind", "url"]
# Takes seconds; the timeout is for busy machines.
pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.timeout(400)]


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_every_law_holds_on_a_server_too(url: str) -> None:
    world = play(draw_plan(1, Shape(seconds=3, schedules=12)), url=url)
    assert world.law is None, f"{world.law}: {world.detail}\n" + "\n".join(world.recent)
    assert world.figures["slots"] > 10

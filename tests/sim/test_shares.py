"""Worlds with reservations of daily budgets: every ended attempt releases its reservation."""

import re

import pytest
from sqlalchemy import Connection, event
from tests.sim.simulator.laws import Broken
from tests.sim.simulator.plan import Shape, draw_plan
from tests.sim.simulator.world import World

from lodger.engine.store.connection.database import Database

SHAPE = Shape(seconds=10, schedules=16, trouble=4, draws=True)
#: Worlds in which nodes die with cancelled attempts.
CANCELLING = Shape(seconds=10, schedules=12, trouble=10, focus="cancel", draws=True)
LAW = "a share of a day is held by an unfinished action"
pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.timeout(400)]


def test_no_share_outlives_its_attempt() -> None:
    with World(draw_plan(1, SHAPE)) as world:
        figures = world.run()
    assert figures["attempts"] > 50, "a world in which nothing runs proves nothing"
    assert figures["shares"] > 50, "attempts take shares"


def test_a_share_that_is_kept_by_the_end_of_the_lease_is_found() -> None:
    """The law detects that this release is missing."""
    pattern = re.compile(r"^DELETE FROM lodger_lots WHERE \(SELECT")

    def install(database: Database) -> None:
        def listen(
            _connection: Connection, _cursor: object, statement: str, parameters: object, _context: object, _many: bool
        ) -> tuple[str, object]:
            return (f"{statement} AND 0" if pattern.search(statement) else statement), parameters

        event.listen(database.engine, "before_cursor_execute", listen, retval=True)

    law = "none is broken"
    for seed in (5, 9, 3):
        with World(draw_plan(seed, CANCELLING), prepare=install) as world:
            try:
                world.run()
            except Broken as broken:
                law = broken.law
                break
    assert law == LAW

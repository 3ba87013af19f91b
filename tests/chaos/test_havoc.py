"""Nodes, workers and the database are killed with SIGKILL while slots come due; then the ledger is checked.

``LODGER_CHAOS=10 pytest tests/chaos/test_havoc.py`` runs for 10 minutes, with thousands of schedules.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.havoc import Havoc, durable
from tests.databases.fixtures import absent
from tests.databases.server import Server

MINUTES = float(os.environ.get("LODGER_CHAOS", "0"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400 + 180 * MINUTES),
    pytest.mark.skipif(absent() is not None, reason=f"NOT TESTED on PostgreSQL: {absent()}"),
]


@pytest.fixture
def server() -> Iterator[Server]:
    own = durable()
    yield own
    own.remove()


def test_nothing_is_lost_and_nothing_happens_twice(server: Server, tmp_path: Path) -> None:
    if MINUTES:
        havoc = Havoc(server, tmp_path, schedules=3000, seconds=60 * MINUTES, pause_s=1.0, spread=10)
    else:
        havoc = Havoc(server, tmp_path, schedules=30, seconds=5.0, pause_s=0.5, node_count=3)
    if not proves(havoc):  # a busy machine runs few actions, and kills little, in a short time
        (tmp_path / "again").mkdir()
        havoc = Havoc(server, tmp_path / "again", schedules=40, seconds=60.0, pause_s=2.0)
        assert proves(havoc), "a chaos in which nothing is done proves nothing"


def proves(havoc: Havoc) -> bool:
    """Whether enough was done, and killed, in a chaos that has broken nothing."""
    found = havoc.run()
    assert not found.lost, str(found)
    assert not found.doubled, str(found)
    assert found.slots == found.run + found.in_gaps
    return found.traces > 20 and havoc.deeds["worker"] + havoc.deeds["node"] >= 3

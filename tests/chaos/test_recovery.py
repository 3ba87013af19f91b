"""Actions of a killed worker or node are started again, with default settings.

The promised times are 2 s and 10 s; ``python -m tests.chaos.recovery`` measures them. The bound here is larger, for busy machines, but far
below the deadline of a run.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.recovery import PROMISED_S, Pair, pair
from tests.databases.fixtures import absent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(absent() is not None, reason=f"NOT TESTED on PostgreSQL: {absent()}"),
]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Pair]:
    with pair(tmp_path) as made:
        yield made


def test_what_was_killed_begins_again(nodes: Pair) -> None:
    assert nodes.worker_s() < 20 * PROMISED_S["worker"]
    assert nodes.node_s() < 9 * PROMISED_S["node"]

"""What a killed worker or node ran begins again by itself, with every setting at its default.

The promise is 2 s and 10 s; ``python -m tests.chaos.recovery`` measures it. Here the bound is wider, for machines that are
busy with other things: what it shows is that nobody waits for the deadline of a run, which is minutes away.
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

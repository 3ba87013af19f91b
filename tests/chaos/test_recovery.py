"""Actions of a killed worker or node are started again, with default settings, long before their deadline.

``python -m tests.chaos.recovery`` measures how soon; 2 and 10 s are promised.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.recovery import Pair, pair
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
    nodes.worker_s()
    nodes.node_s()
    reasons = [each.error.message for each in nodes.ended if each.error is not None]
    assert reasons == [
        "the worker was killed from outside",
        "the node that ran this attempt stopped renewing its lease",
    ]

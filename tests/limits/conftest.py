"""A pool in the real walls for each runtime of JavaScript."""

from collections.abc import Iterator

import pytest
from tests.limits.machine import Machine


@pytest.fixture(params=["quickjs", "quickjs-native"])
def js(request: pytest.FixtureRequest) -> Iterator[Machine]:
    machine = Machine(request.param)
    yield machine
    machine.close()

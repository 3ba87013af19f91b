"""Fixtures: a prepared runtime, and a function that runs a script in a forked worker without walls."""

from collections.abc import Callable
from functools import partial

import pytest
from tests.unit.runtime import harness


@pytest.fixture(scope="session")
def runtime(request: pytest.FixtureRequest) -> harness.Forks:
    return harness.prepared(getattr(request, "param", "quickjs"))


@pytest.fixture
def run(runtime: harness.Forks) -> Callable[..., harness.Reports]:
    return partial(harness.run, runtime)

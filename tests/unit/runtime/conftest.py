"""The prepared runtime and a function that runs a script in a forked worker without walls."""

from collections.abc import Callable
from functools import partial

import pytest
from tests.unit.runtime import harness

from lodger.sandbox.runtimes.quickjs import Runtime


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    return harness.prepared()


@pytest.fixture
def run(runtime: Runtime) -> Callable[..., harness.Told]:
    return partial(harness.run, runtime)

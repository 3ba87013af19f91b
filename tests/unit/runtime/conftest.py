"""The prepared runtime and a function that runs a script in a forked worker without walls."""

from collections.abc import Callable
from functools import partial

import pytest
from tests.unit.runtime import harness

from lodger.sandbox.runtimes.quickjs import Runtime


@pytest.fixture(scope="session", params=["quickjs", "quickjs-native"])
def runtime(request) -> Runtime:
    return harness.prepared() if request.param == "quickjs" else harness.prepared_native()


@pytest.fixture
def run(runtime: Runtime) -> Callable[..., harness.Told]:
    return partial(harness.run, runtime)

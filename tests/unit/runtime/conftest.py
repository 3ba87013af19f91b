"""Fixtures: a prepared runtime, and a function that runs a script in a forked worker without walls."""

from collections.abc import Callable
from functools import partial

import pytest
from tests.unit.runtime import harness

from lodger.sandbox.runtimes.quickjs import Runtime
from lodger.sandbox.runtimes.quickjs_native import Runtime as NativeRuntime


@pytest.fixture(scope="session")
def runtime(request: pytest.FixtureRequest) -> Runtime | NativeRuntime:
    native = getattr(request, "param", "quickjs") == "quickjs-native"
    return harness.prepared_native() if native else harness.prepared()


@pytest.fixture
def run(runtime: Runtime | NativeRuntime) -> Callable[..., harness.Reports]:
    return partial(harness.run, runtime)

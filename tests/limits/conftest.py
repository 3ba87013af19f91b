"""Fixtures: a pool in the real sandbox for each runtime."""

from collections.abc import Iterator

import pytest
from tests.limits.machine import RUNTIMES, Machine


def _machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    machine = Machine(request.param)
    yield machine
    machine.close()


@pytest.fixture(params=[name for name in RUNTIMES if name != "wasm"])
def js(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Return a machine for each runtime of JavaScript."""
    yield from _machine(request)


@pytest.fixture(params=RUNTIMES)
def any_runtime(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Return a machine for each runtime."""
    yield from _machine(request)

"""Fixtures of the tests of the runtime."""

from tests.unit.runtime.conftest import run, runtime

__all__ = ["run", "runtime"]

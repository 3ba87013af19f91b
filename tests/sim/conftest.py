"""Settings of the simulation tests."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet() -> Iterator[None]:
    """Disable the engine's log: failures of the database are expected."""
    logger = logging.getLogger("lodger")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)

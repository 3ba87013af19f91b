"""Refusals of the database are what a simulation is made of: nobody has to read of them."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet() -> Iterator[None]:
    """Keep the engine's log still."""
    logger = logging.getLogger("lodger")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)

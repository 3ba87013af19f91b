"""What commands begin from is there before the first test."""

import pytest
from tests.e2e import ready


@pytest.fixture(scope="session", autouse=True)
def begun() -> None:
    """No test's process."""
    ready.waiting()

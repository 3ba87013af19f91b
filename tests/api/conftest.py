"""Houses for the API's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.house import House, house
from tests.databases.fixtures import empty_url, kind, url

__all__ = ["empty_url", "kind", "lodge", "url"]


@pytest.fixture
def lodge(tmp_path: Path) -> Iterator[House]:
    """A house of the test's own, furnished for tenant acme."""
    with house(f"sqlite:///{tmp_path / 'ledger.db'}") as made:
        made.furnish()
        yield made

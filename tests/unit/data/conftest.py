"""The shop of these tests, on every database."""

from collections.abc import Iterator

import pytest
from tests.databases.fixtures import kind, url
from tests.unit.data.shop import Shop

__all__ = ["kind", "shop", "url"]


@pytest.fixture
def shop(kind: str, url: str) -> Iterator[Shop]:
    made = Shop(None if kind == "sqlite" else url)
    yield made
    made.close()

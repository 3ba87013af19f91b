"""The shop of these tests, on every database: with every wall that the database has, and with Lodger's own condition alone."""

from collections.abc import Iterator

import pytest
from tests.databases.fixtures import kind, url
from tests.unit.data.shop import Shop

__all__ = ["bare", "kind", "shop", "url"]


@pytest.fixture
def bare(kind: str, url: str) -> Iterator[Shop]:
    """Without the database's own wall."""
    made = Shop(None if kind == "sqlite" else url)
    yield made
    made.close()


@pytest.fixture
def shop(bare: Shop) -> Shop:
    """With it."""
    bare.wall()
    return bare

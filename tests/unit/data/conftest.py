"""The shop of these tests, on every database: with every wall that the database has, and with Lodger's own condition alone."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.databases.fixtures import kind, postgres, url
from tests.unit.data.shop import Shop

__all__ = ["bare", "kind", "shop", "still", "url"]


@pytest.fixture
def bare(kind: str, url: str) -> Iterator[Shop]:
    """Without the database's own wall."""
    made = Shop(None if kind == "sqlite" else url)
    yield made
    made.close()


@pytest.fixture(scope="module")
def still(kind: str) -> Iterator[Shop]:
    """With it, one for all tests of a module that commit nothing: each finds it as it was."""
    with ExitStack() as stack:
        name = None if kind == "sqlite" else postgres().database()
        if name is not None:
            stack.callback(postgres().drop, name)
        made = Shop(None if name is None else postgres().url(name))
        stack.callback(made.close)
        made.wall()
        yield made


@pytest.fixture
def shop(bare: Shop) -> Shop:
    """With it."""
    bare.wall()
    return bare

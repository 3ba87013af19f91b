"""The shop of these tests, on every database: with every wall that the database has, and with Lodger's own condition alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.databases.fixtures import kind, postgres, url
from tests.unit.data.shop import Shop

__all__ = ["bare", "kind", "shop", "still", "url"]


def bare_shop(url: str) -> None:
    """Fill an empty database."""
    Shop(url).close()


def walled_shop(url: str) -> None:
    """Fill an empty database, with the database's own wall."""
    made = Shop(url)
    made.wall()
    made.close()


@contextmanager
def shop_on(kind: str, prepare: Callable[[str], None]) -> Iterator[Shop]:
    """A shop: in memory on SQLite, on PostgreSQL in a copy of a prepared database."""
    name = None if kind == "sqlite" else postgres().database(prepare=prepare)
    made = Shop(None if name is None else postgres().url(name))
    if prepare is walled_shop:
        made.stand() if name else made.wall()
    try:
        yield made
    finally:
        made.close()
        if name is not None:
            postgres().drop(name)


@pytest.fixture
def bare(kind: str) -> Iterator[Shop]:
    """Without the database's own wall."""
    with shop_on(kind, bare_shop) as made:
        yield made


@pytest.fixture(scope="module")
def still(kind: str) -> Iterator[Shop]:
    """With it, one for all tests of a module that commit nothing: each finds it as it was."""
    with shop_on(kind, walled_shop) as made:
        yield made


@pytest.fixture
def shop(kind: str) -> Iterator[Shop]:
    """With it."""
    with shop_on(kind, walled_shop) as made:
        yield made

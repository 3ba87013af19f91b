"""Fixtures that run one test on every database; a conftest imports them by name.

The kind of database is a session's parameter, so that all tests of one kind run together and the server is started
outside of any test.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.databases.template import EMPTY

if TYPE_CHECKING:
    from tests.databases.relay import Relay
    from tests.databases.server import Server

KINDS = ("sqlite", "postgresql")


def absent() -> str | None:
    """Return why there is no PostgreSQL, None if there is one."""
    try:
        import psycopg  # noqa: F401 - whether it is there is all that is asked
    except ImportError:
        return "psycopg is not installed (pip install 'lodger[postgres]')"
    from tests.databases import server

    return None if server.binaries() else "no PostgreSQL on this machine (apt-get install postgresql)"


def postgres() -> "Server":
    """Return the session's server, or skip aloud."""
    missing = absent()
    if missing:
        pytest.skip(f"NOT TESTED on PostgreSQL: {missing}")
    from tests.databases.server import shared

    return shared()


@pytest.fixture(scope="session", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Which database; PostgreSQL is up when it is that one."""
    if request.param == "postgresql":
        postgres()
    return str(request.param)


@pytest.fixture
def empty_url(kind: str, tmp_path: Path) -> Iterator[str]:
    """A place where there is no ledger yet."""
    yield from _place(kind, tmp_path, empty=True)


@pytest.fixture
def url(kind: str, tmp_path: Path) -> Iterator[str]:
    """A place for a ledger, perhaps with its tables already."""
    yield from _place(kind, tmp_path, empty=False)


@pytest.fixture
def unused_url(kind: str, tmp_path: Path) -> Iterator[str]:
    """A place for a ledger that no other test has used: without its statistics, counts and dead rows."""
    yield from _place(kind, tmp_path, empty=False, used=False)


@pytest.fixture
def place(kind: str, tmp_path: Path) -> Iterator[str]:
    """The platform's own database, empty."""
    yield from _place(kind, tmp_path, empty=True, file="shop.db")


@pytest.fixture(scope="session")
def server() -> "Server":
    """The PostgreSQL server itself, running before any test begins."""
    return postgres()


@pytest.fixture
def name(server: "Server") -> Iterator[str]:
    """A database of its own on the server, with Lodger's tables."""
    made = server.database()
    yield made
    server.drop(made)


@pytest.fixture
def server_url(server: "Server", name: str) -> str:
    """Return the URL of the test's database on the server; a module that knows no other kind imports it as ``url``."""
    return server.url(name)


@pytest.fixture
def relay(server: "Server") -> Iterator["Relay"]:
    """A network between a client and the server."""
    from tests.databases.relay import Relay

    made = Relay(server)
    yield made
    made.close()


def _place(kind: str, folder: Path, *, empty: bool, used: bool = True, file: str = "ledger.db") -> Iterator[str]:
    """Yield the URL of a new database."""
    if kind == "sqlite":
        if empty:
            EMPTY.add(str(folder / file))
        yield f"sqlite:///{folder / file}"
        return
    name = postgres().database(empty=empty, used=used)
    yield postgres().url(name)
    postgres().drop(name)

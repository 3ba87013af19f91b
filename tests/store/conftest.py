"""One suite over every database: a new one slots in as one more kind in tests/databases/fixtures.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.databases.fixtures import empty_url, kind, name, relay, server, url
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine

__all__ = ["bench", "empty_url", "kind", "name", "relay", "server", "url"]


@pytest.fixture
def bench(url: str, tmp_path: Path) -> Iterator[Bench]:
    clock = VirtualClock()
    settings = Settings(
        sqlite_synchronous="NORMAL", concurrent_runs=100, min_interval_s=1, lease_s=6, secret_keys=tmp_path / "keys"
    )
    with Engine.open(url, clock=clock, settings=settings) as engine:
        yield Bench(engine, clock)

"""One suite over every database: a new one slots in as one more parameter of ``url``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.bench import Bench
from tests.store.intervals import VirtualClock, compile_intervals

from lodger.engine.settings import Settings
from lodger.engine.sync import Engine

DATABASES = ["sqlite"]


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    assert request.param == "sqlite"
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture
def bench(url: str) -> Iterator[Bench]:
    clock = VirtualClock()
    settings = Settings(sqlite_synchronous="NORMAL", concurrent_runs=100, min_interval_s=1)
    with Engine.open(url, clock=clock, settings=settings, compile_schedule=compile_intervals) as engine:
        yield Bench(engine, clock)

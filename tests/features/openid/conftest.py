"""A running API with the dashboard, before a provider is named."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.running_api import RunningApi, running_api

from lodger.engine.web.dashboard import Dashboard


@pytest.fixture
def lodge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningApi]:
    """A running API with the dashboard, before a provider is named."""
    monkeypatch.setenv("OIDC_CLIENT_SECRET", "not checked here")
    with running_api(f"sqlite:///{tmp_path / 'ledger.db'}", api_failures_per_minute=10_000) as made:
        made.furnish()
        Dashboard(made.api).add()
        yield made

"""Houses for the API's tests."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.api.running_api import RunningApi, running_api
from tests.databases.fixtures import empty_url, kind, url

__all__ = ["empty_url", "kind", "lodge", "url"]
#: Connections that a ledger's pool keeps.
POOLED = 8


@pytest.fixture
def lodge(tmp_path: Path) -> Iterator[RunningApi]:
    """A running API on a ledger of the test's own, with tenant acme, a script and a schedule."""
    with running_api(f"sqlite:///{tmp_path / 'ledger.db'}") as made:
        made.furnish()
        yield made


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    """One running API for all tests of a module whose requests are refused: each test finds it as it was."""
    with running_api(f"sqlite:///{tmp_path_factory.mktemp('steady') / 'ledger.db'}") as made:
        made.furnish()
        made.token("admin")
        made.token("viewer", "acme")
        with ExitStack() as all_at_once:  # connections that stay open in the pool are no test's
            for _ in range(POOLED):
                all_at_once.enter_context(made.engine.context.database.read())
        made.ask("GET", "/me")
        yield made

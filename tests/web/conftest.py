"""A furnished house with the dashboard, and clients that are signed in."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from tests.api.house import House, house

from lodger.engine.web.dashboard import Dashboard


@pytest.fixture
def lodge(tmp_path: Path) -> Iterator[House]:
    """A house of the test's own, furnished for two tenants, with the dashboard."""
    with house(f"sqlite:///{tmp_path / 'ledger.db'}") as made:
        made.furnish()
        made.furnish("other")
        Dashboard(made.api).add()
        yield made


@pytest.fixture
def signed_in(lodge: House) -> Iterator[Callable[..., httpx2.Client]]:
    """Returns a client with the session of a role."""
    with ExitStack() as stack:

        def sign_in(role: str, tenant: str | None = None) -> httpx2.Client:
            client = httpx2.Client(base_url=lodge.url, timeout=120, trust_env=False, headers={"accept": "text/html"})
            stack.enter_context(client)
            answer = client.post("/api/v1/session", json={"token": lodge.token(role, tenant)})
            assert answer.status_code == 201
            return client

        yield sign_in

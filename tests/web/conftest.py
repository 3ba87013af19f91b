"""A running API with tenants and the dashboard, and clients that are signed in."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx2
import pytest
from tests.api.running_api import RunningApi, running_api
from tests.leaks import no_leaks
from tests.web.browsing import CHROMIUM, QUIET, START_S, Browser, ended_after

from lodger.engine.web.dashboard import Dashboard

__all__ = ["no_leaks"]


@pytest.fixture
def lodge(tmp_path: Path) -> Iterator[RunningApi]:
    """A running API with the dashboard, on a ledger of the test's own with two tenants."""
    with running_api(f"sqlite:///{tmp_path / 'ledger.db'}") as made:
        made.furnish()
        made.furnish("other")
        Dashboard(made.api).add()
        yield made


@pytest.fixture
def signed_in(lodge: RunningApi) -> Iterator[Callable[..., httpx2.Client]]:
    """Returns a client with the session of a role."""
    with ExitStack() as stack:

        def sign_in(role: str, tenant: str | None = None) -> httpx2.Client:
            return stack.enter_context(lodge.browser(role, tenant))

        yield sign_in


#: Why no browser started once: the tests of further modules do not wait for it again.
broken: list[str] = []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The machine's Chromium, one for the tests of a module."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="NOT TESTED in a browser: playwright is not installed (pip install playwright)"
    )
    if CHROMIUM is None:
        pytest.skip("NOT TESTED in a browser: no Chromium (apt-get install chromium)")
    if broken:
        pytest.fail(broken[0], pytrace=False)
    playwright = None
    try:
        with ended_after(START_S):
            playwright = sync_api.sync_playwright().start()
            made = playwright.chromium.launch(
                executable_path=CHROMIUM,
                args=list(QUIET),
                timeout=START_S * 1000,
                env=dict(os.environ) | {"TZ": "UTC0"},  # which the browser calls Etc/Unknown: pages show UTC
            )
    except Exception as error:
        broken.append(f"Chromium did not start within {START_S} s: {error}")
        if playwright is not None:
            with ended_after(START_S), suppress(Exception):
                playwright.stop()
        pytest.fail(broken[0], pytrace=False)
    yield made
    with ended_after(START_S):
        made.close()
        playwright.stop()

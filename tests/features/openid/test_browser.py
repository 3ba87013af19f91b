"""Signing in and out at a provider in a real browser."""

from pathlib import Path

from tests.api.running_api import RunningApi
from tests.features.openid.providers import RULES, configure, mock_provider
from tests.web.browsing import Browser, opened
from tests.web.conftest import browser, no_leaks

__all__ = ["browser", "no_leaks"]


def test_a_browser_signs_in_and_out_at_the_provider(lodge: RunningApi, tmp_path: Path, browser: Browser) -> None:
    with mock_provider() as issuer, opened(browser, "net::ERR_") as page:
        configure(lodge, tmp_path, RULES.replace("{issuer}", issuer))
        # Another site than the provider's, as it would be.
        page.goto(f"http://localhost:{lodge.port}/t/acme/scripts")
        page.get_by_role("link", name="Sign in with Example").click()
        page.get_by_role("button", name="bob").click()
        page.wait_for_url("**/t/acme/scripts")
        page.get_by_text("editor").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{issuer}/oauth2/end_session?**")
        page.locator("form button").first.click()
        page.wait_for_url(f"http://localhost:{lodge.port}/sign-in*")
        assert page.context.cookies(f"http://localhost:{lodge.port}") == []

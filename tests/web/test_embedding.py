"""The dashboard inside a platform's page: links that sign a tenant's user in once, frames, and cookies that go with them."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
import trustme
from pydantic import ValidationError
from tests.api.running_api import NO_CERTIFICATES, RunningApi, running_api
from tests.web.browsing import Browser, opened

from lodger.engine.core.settings import Settings
from lodger.engine.web.dashboard import Dashboard

JSON = {"accept": "application/json"}


def opened_by(lodge: RunningApi, path: str) -> httpx2.Response:
    """The session that a link begins, as the API tells it; what the link answers if it begins none."""
    with httpx2.Client(base_url=lodge.url, trust_env=False, verify=NO_CERTIFICATES, headers=JSON) as browser:
        answer = browser.get(path)
        return browser.get("/api/v1/session") if answer.status_code == 200 else answer


def test_a_link_signs_one_user_of_a_tenant_in_once(lodge: RunningApi) -> None:
    made = lodge.ask(
        "POST", "/tenants/acme/sign-in-links", {"name": "ann@acme.example", "role": "runner"}, role="tenant_admin", tenant="acme"
    )  # fmt: skip
    assert made.status_code == 201
    link = made.json()
    assert (link["name"], link["role"], link["tenant_id"]) == ("ann@acme.example", "runner", "acme")
    assert "acme" not in link["path"], "nothing to change"
    code = link["path"].partition("code=")[2]
    for headers in ({"cookie": f"lodger={code}"}, {"authorization": f"Bearer {code}"}):
        assert httpx2.get(f"{lodge.url}/api/v1/me", headers=headers).status_code == 401, "it is no session and no token"
    session = opened_by(lodge, link["path"] + "&next=/t/acme/actions").json()
    assert (session["name"], session["role"], session["tenant_id"]) == ("ann@acme.example", "runner", "acme")
    assert opened_by(lodge, link["path"]).status_code == 401, "once"
    links = lodge.engine.tokens.sign_in_link
    late = links("acme", "ann", "viewer", minutes=1)
    lodge.clock.advance(61)
    assert opened_by(lodge, late.path).status_code == 401
    lodge.engine.tenants.create("gone")
    orphan, theirs = links("gone", "ann", "viewer"), links("other", "ann", "viewer", impersonator="sue")
    lodge.engine.tenants.delete("gone")
    assert opened_by(lodge, orphan.path).status_code == 401
    assert opened_by(lodge, theirs.path).json()["name"] == "sue as ann"
    actors = {(row.tenant_id, row.actor) for row in lodge.engine.audit.list(verb="sessions.begin")}
    assert actors == {("acme", "ann@acme.example"), ("other", "sue as ann")}
    made = [row.after for row in lodge.engine.audit.list(tenant_id="other", verb="tokens.sign_in_link")]
    assert made == ["a link for viewer sue as ann"], "who makes a link answers for both names"
    assert code not in str(list(lodge.engine.audit.list()))


@pytest.mark.parametrize(
    ("tenant", "body", "status", "code"),
    [
        ("acme", {"name": "ann", "role": "admin"}, 422, "token_scope.platform"),
        ("acme", {"name": "ann", "role": "king"}, 422, "role_unknown"),
        ("acme", {"name": "ann", "role": "viewer", "minutes": 61}, 422, "link_minutes"),
        ("acme", {"name": "ann", "role": "viewer", "minutes": 0}, 422, "link_minutes"),
        (
            "acme",
            {"name": "ann", "role": "viewer", "impersonator": "the platform's support"},
            422,
            "impersonator_other",
        ),
        ("acme", {"name": " ", "role": "viewer"}, 422, "token_name_invalid"),
        ("other", {"name": "ann", "role": "viewer"}, 404, "tenant_unknown"),
    ],
)
def test_a_link_gives_nothing_but_a_role_of_the_own_tenant(
    lodge: RunningApi, tenant: str, body: dict[str, object], status: int, code: str
) -> None:
    answer = lodge.ask("POST", f"/tenants/{tenant}/sign-in-links", body, role="tenant_admin", tenant="acme")
    assert (answer.status_code, answer.json()["code"]) == (status, code.partition(".")[0])


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "https:",
        "app.example.com",
        "https://a.example; script-src *",
        "https://a.example/x",
        "'none'",
        "https://a.example,b",
        "https://a.example\nx-header: y",
        "https://a.example\n",
    ],
)
def test_only_origins_may_be_named_as_ancestors(text: str) -> None:
    with pytest.raises(ValidationError):
        Settings(frame_ancestors=text)
    assert Settings(frame_ancestors="'self' https://*.example.com http://[::1]:80 https://app.example.com:8443")


def test_nobody_frames_the_dashboard_unless_the_setting_names_them(lodge: RunningApi) -> None:
    for path in ("/sign-in", "/healthz", "/static/dashboard.js"):
        answer = httpx2.get(lodge.url + path)
        assert answer.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


class Platform(BaseHTTPRequestHandler):
    """A page of another site with the dashboard in a frame."""

    frame = ""

    def do_GET(self) -> None:
        body = f'<!doctype html><title>Shop</title><iframe name="lodger" width="1000" height="700" src="{self.frame}"></iframe>'
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture
def platform() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Platform)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_frame_of_another_site_keeps_its_session_and_works(browser: Browser, platform: str, tmp_path: Path) -> None:
    certificate = trustme.CA().issue_cert("localhost")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "tls.pem")
    settings = {"tls_cert": tmp_path / "tls.pem", "tls_key": tmp_path / "tls.pem", "frame_ancestors": platform}
    with running_api(f"sqlite:///{tmp_path / 'ledger.db'}", **settings) as lodge:
        lodge.furnish()
        Dashboard(lodge.api).add()
        root = f"https://localhost:{lodge.port}"
        link = lodge.engine.tokens.sign_in_link("acme", "ann", "runner")
        Platform.frame = f"{root}{link.path}&next=/t/acme/schedules/s"
        with opened(browser, ignore_https_errors=True) as page:
            page.goto(platform)
            frame = page.frame_locator("iframe[name=lodger]")
            frame.get_by_role("button", name="Run now").click()
            frame.get_by_text("Origin").wait_for()
            (cookie,) = page.context.cookies()
            assert (cookie["name"], cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (
                "__Host-lodger", True, True, "None"
            )  # fmt: skip
            assert cookie["partitionKey"].startswith("http://127.0.0.1")
            page.goto(f"{root}/t/acme")
            assert "/sign-in" in page.url, "the session is the frame's alone"
        assert lodge.engine.actions.list("acme", origin="run_now")
        Platform.frame = f"{root}/sign-in"
        with opened(browser, "frame-ancestors", "ERR_BLOCKED_BY_RESPONSE", ignore_https_errors=True) as page:
            page.goto(platform.replace("127.0.0.1", "localhost"))
            page.locator("iframe[name=lodger]").wait_for()  # the page has loaded, and with it the frame
            assert page.frame_locator("iframe[name=lodger]").get_by_text("Sign in").count() == 0, (
                "another origin frames nothing"
            )

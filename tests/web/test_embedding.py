"""The dashboard inside a platform: links that sign a user in once, frames and their cookies, a mount below a path."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
import trustme
import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from tests.api.running_api import NO_CERTIFICATES, ONE, RunningApi, running_api
from tests.web.browsing import Browser, opened

from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings
from lodger.engine.server.app import Api
from lodger.engine.sync import Engine
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
def test_only_origins_may_be_named_as_ancestors_and_callers(text: str) -> None:
    for setting in ("frame_ancestors", "api_cors_origins"):
        if (setting, text) != ("api_cors_origins", "*"):
            with pytest.raises(ValidationError):
                Settings.model_validate({setting: text})
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


PREFIX = "/admin/lodger"
#: Another path, below which tokens and sessions authenticate.
TOKENS = "/tokens/lodger"
#: The platform's users by the value of its own cookie.
USERS = {
    "ann": Caller.user("ann@shop.example", Role.OPERATOR),
    "bob": Caller.user("bob@acme.example", Role.EDITOR, "acme"),
    "eve": Caller.user("eve@acme.example", Role.VIEWER, "acme"),
}


async def _login(request: Request) -> Response:
    answer = PlainTextResponse(f"welcome {request.query_params['as']}")
    answer.set_cookie("shop", request.query_params["as"], httponly=True, samesite="lax")
    return answer


async def _sign_in(_request: Request) -> Response:
    return PlainTextResponse("the platform's own sign-in page")


async def _authenticate(request: Request) -> Caller | None:
    return USERS.get(request.cookies.get("shop", ""))


@dataclass
class Mounted:
    """A platform's application around an engine, on a socket."""

    engine: Engine
    url: str

    def client(self, user: str | None = None) -> httpx2.Client:
        cookies = {"shop": user} if user else {}
        return httpx2.Client(base_url=self.url + PREFIX, timeout=50, trust_env=False, cookies=cookies)


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    with Engine.open(str(tmp_path_factory.mktemp("mounted") / "ledger.db")) as engine:
        for tenant in ("acme", "other"):
            engine.tenants.create(tenant)
            engine.scripts.put(tenant, "job", ONE)
            engine.schedules.create(tenant, "s", script="job", rules="every 1h")
        api = Api(engine, authenticate=_authenticate)
        Dashboard(api, sign_in="/sign-in").add()
        own = Api(engine)
        Dashboard(own).add()
        mounts = [Mount(PREFIX, app=api.app), Mount(TOKENS, app=own.app)]
        app = Starlette(routes=[Route("/login", _login), Route("/sign-in", _sign_in), *mounts])
        server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_config=None))
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(),))
        thread.start()
        while not server.started:
            assert thread.is_alive()
            threading.Event().wait(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Mounted(engine, f"http://127.0.0.1:{port}")
        server.should_exit = True
        thread.join()
        loop.close()


def test_a_browser_without_the_platforms_cookie_is_sent_to_its_sign_in_page(mounted: Mounted) -> None:
    with mounted.client() as visitor:
        answer = visitor.get("/schedules", headers={"accept": "text/html"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        refused = visitor.get("/api/v1/tenants")
        assert (refused.status_code, refused.json()["code"]) == (401, "not_signed_in")
        assert visitor.get("/static/dashboard.js").status_code == 200
        assert visitor.get("/healthz").status_code == 200
        token = mounted.engine.tokens.create("t", "admin").text
        shown = {"authorization": f"Bearer {token}"}
        assert visitor.get("/api/v1/tenants", headers=shown).status_code == 401, "tokens are replaced"
        assert visitor.post("/api/v1/session", json={"token": token}).status_code == 404, "sessions are replaced"


def test_a_change_comes_from_the_platforms_own_pages_with_the_header(mounted: Mounted) -> None:
    path = "/api/v1/tenants/acme/schedules/s/pause"
    with mounted.client("bob") as bob:
        assert bob.post(path, json={}).json()["code"] == "csrf_missing"
        ours = {"x-csrf-token": "1"}
        for foreign in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
            assert bob.post(path, json={}, headers=ours | foreign).json()["code"] == "other_site"
        assert bob.post(path, json={}, headers=ours | {"origin": mounted.url}).status_code == 200
        assert bob.post(path.replace("acme", "other"), json={}, headers=ours).status_code == 404
        assert bob.post(path.replace("pause", "resume"), headers=ours).status_code == 200
    with mounted.client("eve") as eve:
        assert eve.post(path, json={}, headers=ours).json()["code"] == "role_too_low"
    entry = mounted.engine.audit.list("acme", verb="schedules.pause")[0]
    assert (entry.actor, entry.via) == ("bob@acme.example", "http")


def test_each_user_sees_what_the_role_allows_with_links_below_the_path(mounted: Mounted) -> None:
    with mounted.client("eve") as eve, mounted.client("ann") as ann:
        page = eve.get("/t/acme/schedules/s")
        assert "data-call" not in page.text
        assert "Sign out" not in page.text
        assert f'href="{PREFIX}/t/acme/schedules"' in page.text
        assert eve.get("/t/other").status_code == 404
        assert eve.get("/tenants").status_code == 403
        assert ann.get("/tenants").status_code == 200
        missing = ann.get("/api/v1/tenants/acme/schedules/s/pause")
        assert (missing.status_code, missing.headers["allow"]) == (405, "POST")


def test_a_journey_in_a_browser_below_the_path(mounted: Mounted, browser: Browser) -> None:
    with opened(browser) as page:
        page.goto(mounted.url + "/login?as=bob")
        page.goto(mounted.url + PREFIX + "/")
        page.get_by_role("link", name="Schedules").click()
        page.get_by_role("link", name="s", exact=True).click()
        page.locator("#pause > summary").click()
        page.get_by_label("Note").fill("maintenance")
        page.locator("#pause").get_by_role("button", name="Pause").click()
        page.locator("h1").get_by_text("paused").wait_for()
        page.get_by_role("button", name="Resume").click()
        page.locator("h1").get_by_text("armed").wait_for()
        page.get_by_role("link", name="Audit log").click()
        page.get_by_role("cell", name="bob@acme.example").first.wait_for()
        assert page.url.startswith(mounted.url + PREFIX)


def test_without_the_platforms_authentication_a_token_signs_in_below_the_path(
    mounted: Mounted, browser: Browser
) -> None:
    token = mounted.engine.tokens.create("browser", "operator").text
    with opened(browser) as page:
        page.goto(f"{mounted.url}{TOKENS}/t/acme")
        assert page.url == f"{mounted.url}{TOKENS}/sign-in?next={TOKENS}/t/acme"
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{mounted.url}{TOKENS}/t/acme")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{mounted.url}{TOKENS}/sign-in")


def test_a_user_of_a_tenant_needs_a_tenant_and_one_of_the_platform_has_none() -> None:
    for role, tenant in ((Role.EDITOR, None), (Role.ADMIN, "acme"), ("boss", None)):
        with pytest.raises(InputError):
            Caller.user("x", role, tenant)

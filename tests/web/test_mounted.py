"""The dashboard and the API mounted in a platform's own application under a path, with the platform's own sign-in."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from tests.api.running_api import ONE
from tests.web.browsing import Browser, opened

from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.core.errors import InputError
from lodger.engine.server.app import Api
from lodger.engine.sync import Engine
from lodger.engine.web.dashboard import Dashboard

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
class Platform:
    """A platform's application around an engine, on a socket."""

    engine: Engine
    url: str

    def client(self, user: str | None = None) -> httpx2.Client:
        cookies = {"shop": user} if user else {}
        return httpx2.Client(base_url=self.url + PREFIX, timeout=50, trust_env=False, cookies=cookies)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Engine.open(str(tmp_path_factory.mktemp("platform") / "ledger.db")) as engine:
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
        yield Platform(engine, f"http://127.0.0.1:{port}")
        server.should_exit = True
        thread.join()
        loop.close()


def test_a_browser_without_the_platforms_cookie_is_sent_to_its_sign_in_page(platform: Platform) -> None:
    with platform.client() as visitor:
        answer = visitor.get("/schedules", headers={"accept": "text/html"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        refused = visitor.get("/api/v1/tenants")
        assert (refused.status_code, refused.json()["code"]) == (401, "not_signed_in")
        assert visitor.get("/static/dashboard.js").status_code == 200
        assert visitor.get("/healthz").status_code == 200
        token = platform.engine.tokens.create("t", "admin").text
        shown = {"authorization": f"Bearer {token}"}
        assert visitor.get("/api/v1/tenants", headers=shown).status_code == 401, "tokens are replaced"
        assert visitor.post("/api/v1/session", json={"token": token}).status_code == 404, "sessions are replaced"


def test_a_change_comes_from_the_platforms_own_pages_with_the_header(platform: Platform) -> None:
    path = "/api/v1/tenants/acme/schedules/s/pause"
    with platform.client("bob") as bob:
        assert bob.post(path, json={}).json()["code"] == "csrf_missing"
        ours = {"x-csrf-token": "1"}
        for foreign in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
            assert bob.post(path, json={}, headers=ours | foreign).json()["code"] == "other_site"
        assert bob.post(path, json={}, headers=ours | {"origin": platform.url}).status_code == 200
        assert bob.post(path.replace("acme", "other"), json={}, headers=ours).status_code == 404
        assert bob.post(path.replace("pause", "resume"), headers=ours).status_code == 200
    with platform.client("eve") as eve:
        assert eve.post(path, json={}, headers=ours).json()["code"] == "role_too_low"
    entry = platform.engine.audit.list("acme", verb="schedules.pause")[0]
    assert (entry.actor, entry.via) == ("bob@acme.example", "http")


def test_each_user_sees_what_the_role_allows_with_links_below_the_path(platform: Platform) -> None:
    with platform.client("eve") as eve, platform.client("ann") as ann:
        page = eve.get("/t/acme/schedules/s")
        assert "data-call" not in page.text
        assert "Sign out" not in page.text
        assert f'href="{PREFIX}/t/acme/schedules"' in page.text
        assert eve.get("/t/other").status_code == 404
        assert eve.get("/tenants").status_code == 403
        assert ann.get("/tenants").status_code == 200
        missing = ann.get("/api/v1/tenants/acme/schedules/s/pause")
        assert (missing.status_code, missing.headers["allow"]) == (405, "POST")


def test_a_journey_in_a_browser_below_the_path(platform: Platform, browser: Browser) -> None:
    with opened(browser) as page:
        page.goto(platform.url + "/login?as=bob")
        page.goto(platform.url + PREFIX + "/")
        page.get_by_role("link", name="Schedules").click()
        page.get_by_role("link", name="s", exact=True).click()
        page.locator("#pause > summary").click()
        page.get_by_label("Note").fill("maintenance")
        page.get_by_role("button", name="Pause now").click()
        page.locator("h1").get_by_text("paused").wait_for()
        page.get_by_role("button", name="Resume").click()
        page.locator("h1").get_by_text("armed").wait_for()
        page.get_by_role("link", name="Audit log").click()
        page.get_by_role("cell", name="bob@acme.example").first.wait_for()
        assert page.url.startswith(platform.url + PREFIX)


def test_without_the_platforms_authentication_a_token_signs_in_below_the_path(
    platform: Platform, browser: Browser
) -> None:
    token = platform.engine.tokens.create("browser", "operator").text
    with opened(browser) as page:
        page.goto(f"{platform.url}{TOKENS}/t/acme")
        assert page.url == f"{platform.url}{TOKENS}/sign-in?next={TOKENS}/t/acme"
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{platform.url}{TOKENS}/t/acme")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{platform.url}{TOKENS}/sign-in")


def test_a_user_of_a_tenant_needs_a_tenant_and_one_of_the_platform_has_none() -> None:
    for role, tenant in ((Role.EDITOR, None), (Role.ADMIN, "acme"), ("boss", None)):
        with pytest.raises(InputError):
            Caller.user("x", role, tenant)

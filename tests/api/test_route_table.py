"""Every route × {no token, nonsense, expired, revoked, foreign tenant, low role}: 401, 404, 403, and never more than that."""

import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import httpx2
import pytest
from fastapi.routing import APIRoute
from tests.api.running_api import RunningApi, running_api
from tests.store.verbs import every_verb

from lodger.engine.core.access.roles import Role
from lodger.engine.core.clock import from_us
from lodger.engine.features import TABLE
from lodger.engine.server.auth import OPEN
from lodger.engine.service.operations.route import ROOT

NAMES = {
    "node": "n1", "tenant_id": "acme", "name": "job", "schedule": "s", "action_id": "019b76da-a800-7003-ab74-17aa3c0f0e2d",
    "token": "lodger_aaaaaaaaaa", "collection": "carts", "path": "address.city",
}  # fmt: skip
#: Roles of the routes that are no verb; those of verbs stand in the table. None: any token.
OTHERS = {
    ("GET", "/api/v1/me"): None,
    ("GET", "/api/v1/openapi.json"): None,
    ("GET", "/api/v1/session"): None,
    ("DELETE", "/api/v1/session"): None,
    ("GET", "/api/v1/audit/export"): Role.AUDITOR,
    ("GET", "/api/v1/metrics/text"): Role.AUDITOR,
    ("GET", "/api/v1/tenants/{tenant_id}/live"): Role.VIEWER,
    ("GET", "/api/v1/tenants/{tenant_id}/actions/{action_id}/live"): Role.VIEWER,
    ("GET", "/api/v1/tenants/{tenant_id}/audit/export"): Role.VIEWER,
}
#: Routes whose path is the credential: tests/features/script_urls/test_url_requests.py.
CONSENT = {("GET", "/oauth/start/{link}"), ("GET", "/oauth/callback")}
BY_URL = {(method, "/api/v1/in/{text}") for method in ("GET", "POST", "OPTIONS")}
NEEDED = {(route.method, ROOT + route.path): route.role for route in TABLE.routes} | OTHERS


def routes(running_api: RunningApi) -> list[tuple[str, str]]:
    found = running_api.api.framework.routes
    return [
        (method, route.path) for route in found if isinstance(route, APIRoute) for method in sorted(route.methods or ())
    ]


def fill_in(path: str, **names: str) -> str:
    """Return a route's path with names in place of its parameters."""
    return re.sub(r"{(\w+)}", lambda found: (NAMES | names)[found[1]], path)


def ask(running_api: RunningApi, method: str, path: str, token: str | None, **headers: str) -> httpx2.Response:
    """Ask once; of a stream that goes on, what it begins with."""
    shown = {} if token is None else {"authorization": f"Bearer {token}"}
    running_api.http.cookies.clear()
    asked = running_api.http.build_request(
        method, running_api.url + path, headers=shown | {"x-request-id": "same"} | headers
    )
    answer = running_api.http.send(asked, stream=True)
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        answer.close()
    else:
        answer.read()
    return answer


@pytest.fixture
def lenient_api(tmp_path: Path) -> Iterator[RunningApi]:
    """A running API with two tenants, on which wrong tokens are hardly limited."""
    with running_api(f"sqlite:///{tmp_path / 'ledger.db'}", api_failures_per_minute=10_000) as made:
        made.furnish()
        made.furnish("other")
        yield made


def test_every_route_is_in_the_table_and_every_verb_is_a_route(lenient_api: RunningApi) -> None:
    assert set(routes(lenient_api)) - OPEN - BY_URL - CONSENT == set(NEEDED)
    assert {route.name for route in TABLE.routes} | set(TABLE.local_only) == every_verb(lenient_api.engine)


def test_whoever_may_not_gets_no_further(lenient_api: RunningApi, subtests: pytest.Subtests) -> None:
    lodge = lenient_api
    expired = lodge.engine.tokens.create("old", "admin", expires_at=from_us(lodge.clock.us + 1)).text
    lodge.clock.advance(2)
    gone = lodge.engine.tokens.create("gone", "admin")
    lodge.engine.tokens.revoke(gone.token.id)
    missing = (None, "token_missing")
    wrong_tokens = (
        ("nonsense", "token_invalid"),
        (lodge.token("admin")[:-1] + "x", "token_invalid"),
        (expired, "token_expired"),
        (gone.text, "token_invalid"),
    )
    others = cycle(wrong_tokens)
    for method, path in sorted(NEEDED):
        with subtests.test(method=method, path=path):
            at = fill_in(path)
            for shown, code in (missing, next(others)):
                answer = ask(lodge, method, at, shown)
                assert (answer.status_code, answer.json()["code"]) == (401, code)
                assert answer.headers["www-authenticate"].startswith("Bearer")


#: Operations that runners carry out beside those that read, and those of a tenant's administrators beside an editor's.
RUNS = {f"actions.{verb}" for verb in ("bulk", "run_at", "run_in", "run_now", "replay", "retry", "cancel", "backfill")}
ADMINISTERS = {f"tokens.{verb}" for verb in ("create", "revoke", "get", "list", "sign_in_link")}
#: Operations of the platform's administrators alone.
OF_ADMINS = {f"tenants.{verb}" for verb in ("create", "delete", "move", "export", "restore")}
OF_ADMINS |= {"secrets.rotate", "plans.put", "plans.delete", "batches.create"}
#: Operations that read and are no viewer's: they show what runs have read, start a script, or have all of a tenant.
GUARDED = {"actions.record", "scripts.shadow", "scripts.dry_run", "scripts.check"}


def documented_roles() -> dict[tuple[str, str], set[str]]:
    """Return the roles that may carry out each operation, by method and path, as the documentation has them."""
    allowed = {}
    for route in TABLE.routes:
        changes = route.changes or route.name in GUARDED
        tenant = "{tenant_id}" in route.path or route.name in {"schedules.preview", "scripts.offered"}
        if route.name in ADMINISTERS:
            roles = {"tenant_admin", "admin"} if tenant else {"admin"}
        elif route.name in OF_ADMINS:
            roles = {"admin"}
        elif not changes:
            roles = set(Role) if tenant else {"auditor", "operator", "admin"}
        elif not tenant or route.noun == "grants" or route.noun == "tenants":
            roles = {"operator", "admin"}
        else:
            roles = {"editor", "tenant_admin", "operator", "admin"} | ({"runner"} if route.name in RUNS else set())
        allowed[route.method, ROOT + route.path] = roles
    return allowed


def test_every_operation_with_every_role(lenient_api: RunningApi, subtests: pytest.Subtests) -> None:
    """Asked about what does not exist: the answer only tells whether the caller was refused."""
    nothing = {"name": "none", "schedule": "none", "action_id": "019b76da-a800-7003-ab74-17aa3c0f0e2e", "node": "none"}
    for (method, path), roles in sorted(documented_roles().items()):
        with subtests.test(method=method, path=path):
            refused = set()
            for role in Role:
                tenant = None if role.of_platform else "acme"
                at = fill_in(path, **nothing, tenant_id=tenant or "ghost")
                answer = ask(lenient_api, method, at, lenient_api.token(role, tenant))
                assert answer.status_code not in {401, 405, 500}
                if answer.status_code == 403 and answer.json()["code"] == "role_too_low":
                    refused.add(str(role))
            assert {str(role) for role in Role} - refused == {str(role) for role in roles}


def test_a_tenant_that_is_there_and_one_that_is_not_answer_alike_byte_for_byte(lodge: RunningApi) -> None:
    """Asked before the tenant exists and after, with everything in it: not a byte differs, headers included."""
    mine = lodge.token("editor", "acme")
    lodge.engine.tenants.create("mine")
    asked = [(method, fill_in(path, tenant_id="later")) for method, path in sorted(NEEDED) if "{tenant_id}" in path]
    before = [ask(lodge, method, path, mine) for method, path in asked]
    lodge.furnish("later")
    after = [ask(lodge, method, path, mine) for method, path in asked]
    for one, two in zip(before, after, strict=True):
        assert (one.status_code, one.content) == (404, two.content)
        assert dict(one.headers) | {"date": ""} == dict(two.headers) | {"date": ""}


def test_things_of_other_tenants_answer_like_absent_ones(lodge: RunningApi) -> None:
    """By id, through one's own tenant's path: an action, a schedule and a script of another tenant are not there."""
    lodge.furnish("other")
    action = lodge.engine.actions.run_now("other", "s")
    schedule = lodge.engine.schedules.get("other", "s")
    nothing = "019b76da-a800-7003-ab74-17aa3c0f0e2e"
    mine = lodge.token("editor", "acme")
    asked = [
        (method, path) for method, path in sorted(NEEDED) if "{tenant_id}" in path and "{tenant_id}/archive" not in path
    ]
    for method, path in asked:
        for name, there in (("action_id", action.id), ("schedule", schedule.id)):
            if f"{{{name}}}" not in path:
                continue
            found, absent = (ask(lodge, method, fill_in(path, **{name: each}), mine) for each in (there, nothing))
            assert found.status_code == absent.status_code, (method, path)
            assert found.content.replace(there.encode(), b"") == absent.content.replace(nothing.encode(), b"")
            assert found.status_code in {400, 404, 422}, (method, path)
    assert lodge.engine.actions.get(None, action.id).state == "ready"


NO_ROUTES = ["/", "/api", "/api/v1", "/api/v1/", "/api/v2/tenants", "/docs", "/redoc", "/openapi.json", "/favicon.ico",
     "/api/v1/tenants/", "/api/v1//tenants", "/API/V1/TENANTS"]  # fmt: skip


def test_what_is_no_route_is_denied_before_it_is_looked_for(lenient_api: RunningApi, subtests: pytest.Subtests) -> None:
    for path in NO_ROUTES:
        with subtests.test(path=path):
            assert ask(lenient_api, "GET", path, None).status_code == 401
            known = ask(lenient_api, "GET", path, lenient_api.token("viewer", "acme"))
            assert known.status_code in {404, 403}
            assert ask(lenient_api, "GET", path + "?token=" + lenient_api.token("admin"), None).status_code == 401


def test_other_methods(lenient_api: RunningApi) -> None:
    """HEAD is answered as GET without its body, other methods are refused."""
    token = lenient_api.token("admin").encode()

    def answer_to(method: bytes) -> bytes:
        begin = method + b" /api/v1/tenants HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        return lenient_api.raw(begin + b"Authorization: Bearer " + token + b"\r\n\r\n")

    for method in (b"TRACE", b"CONNECT", b"OPTIONS", b"PROPFIND"):
        answer = answer_to(method)
        assert answer.split()[1] in {b"405", b"404"}, method
        assert b"access-control" not in answer.lower()
    (head, nothing), (_head, body) = (answer_to(each).split(b"\r\n\r\n", 1) for each in (b"HEAD", b"GET"))
    assert (head.split()[1], nothing) == (b"200", b"")
    assert b"content-length: %d\r" % len(body) in head.lower() + b"\r"


def test_another_origin_is_allowed_nothing(lenient_api: RunningApi) -> None:
    answer = ask(lenient_api, "GET", "/api/v1/me", lenient_api.token("admin"), origin="https://evil.example")
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"

"""Authentication: tokens, brute force, rate limits, and browser sessions with their cookies, CSRF protection and expiry."""

import re
from datetime import datetime
from pathlib import Path

import httpx2
from tests.api.running_api import RunningApi, running_api
from tests.chaos.processes import until

from lodger.engine.core.clock import from_us
from lodger.engine.store.tenants import sessions


def login(lodge: RunningApi, token: str, **headers: str) -> httpx2.Response:
    lodge.http.cookies.clear()
    return lodge.http.post(f"{lodge.url}/api/v1/session", json={"token": token}, headers=headers)


def pause_schedule(lodge: RunningApi, **headers: str) -> httpx2.Response:
    """Send a request that changes something, with the session's cookie."""
    return lodge.http.post(f"{lodge.url}/api/v1/tenants/acme/schedules/s/pause", json={}, headers=headers)


def test_a_session_from_login_to_logout(lodge: RunningApi) -> None:
    begun = login(lodge, lodge.token("editor", "acme"))
    assert begun.status_code == 201
    cookie = begun.headers["set-cookie"]
    assert re.fullmatch(r"lodger=[\w-]{43}; HttpOnly; Max-Age=43200; Path=/; SameSite=strict", cookie)
    csrf = begun.json()["csrf"]
    assert pause_schedule(lodge).json()["code"] == "csrf_missing"
    assert pause_schedule(lodge, **{"x-csrf-token": csrf[:-1] + "x"}).json()["code"] == "csrf_missing"
    assert pause_schedule(lodge, **{"x-csrf-token": csrf}).status_code == 200
    assert lodge.http.get(f"{lodge.url}/api/v1/session").json()["csrf"] == csrf
    logged = lodge.engine.audit.list("acme", limit=2)
    assert [row.verb for row in logged] == ["schedules.pause", "sessions.begin"]
    assert "editor acme" in logged[0].actor
    ended = lodge.http.delete(f"{lodge.url}/api/v1/session", headers={"x-csrf-token": csrf})
    assert ended.status_code == 204
    value = cookie.partition("=")[2].partition(";")[0]
    after = lodge.http.get(f"{lodge.url}/api/v1/me", headers={"cookie": f"lodger={value}"})
    assert after.json()["code"] == "session_over"


def test_another_site_changes_nothing_and_logs_nobody_in(lodge: RunningApi) -> None:
    site = "sec-fetch-site"
    for headers in ({"origin": "https://evil.example"}, {site: "cross-site"}, {site: "same-site"}, {"origin": "null"}):
        assert login(lodge, lodge.token("admin"), **headers).json()["code"] == "other_site"
        csrf = login(lodge, lodge.token("editor", "acme")).json()["csrf"]
        assert pause_schedule(lodge, **({"x-csrf-token": csrf} | headers)).json()["code"] == "other_site"
    assert lodge.engine.schedules.get("acme", "s").state == "armed"


def test_a_form_of_another_site_logs_nobody_in(lodge: RunningApi) -> None:
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = lodge.http.post(
            f"{lodge.url}/api/v1/session", content=b'{"token": "x"}', headers={"content-type": media}
        )
        assert (answer.status_code, answer.json()["code"]) == (415, "media_type")


def test_a_session_that_somebody_planted_is_none(lodge: RunningApi) -> None:
    """Fixation: the name is drawn at login, and the one that was there before ends."""
    planted = "A" * 43
    assert lodge.http.get(f"{lodge.url}/api/v1/me", headers={"cookie": f"lodger={planted}"}).status_code == 401
    first = login(lodge, lodge.token("editor", "acme")).headers["set-cookie"].partition("=")[2].partition(";")[0]
    again = lodge.http.post(
        f"{lodge.url}/api/v1/session",
        json={"token": lodge.token("editor", "acme")},
        headers={"cookie": f"lodger={first}"},
    )
    second = again.headers["set-cookie"].partition("=")[2].partition(";")[0]
    assert first != second != planted
    lodge.http.cookies.clear()
    assert lodge.http.get(f"{lodge.url}/api/v1/me", headers={"cookie": f"lodger={first}"}).status_code == 401
    assert lodge.http.get(f"{lodge.url}/api/v1/me", headers={"cookie": f"lodger={second}"}).status_code == 200
    both = {"cookie": f"lodger={second}; x=1; lodger={first}"}
    assert lodge.http.get(f"{lodge.url}/api/v1/me", headers=both).status_code in {200, 401}


def test_a_session_ends_with_its_token_and_with_time(lodge: RunningApi) -> None:
    me = f"{lodge.url}/api/v1/me"
    for how in ("revoked", "expired", "idle", "old", "tenant"):
        ends = from_us(lodge.clock.us + 3600 * 1_000_000) if how == "expired" else None
        made = lodge.engine.tokens.create(how, "editor", tenant_id="acme", expires_at=ends)
        login(lodge, made.text)
        assert lodge.http.get(me).status_code == 200, how
        if how == "revoked":
            lodge.engine.tokens.revoke(made.token.prefix)
        elif how == "tenant":
            lodge.engine.tenants.delete("acme")
        elif how == "old":
            for _ in range(11):
                lodge.clock.advance(3600)
                assert lodge.http.get(me).status_code == 200
            lodge.clock.advance(3601)
        else:
            lodge.clock.advance(sessions.IDLE_US / 1e6 if how == "idle" else 3600)
        assert lodge.http.get(me).status_code == 401, how


def test_sessions_of_one_token_are_bounded(lodge: RunningApi) -> None:
    token = lodge.token("viewer", "acme")
    for _ in range(sessions.MAX_SESSIONS + 5):
        assert login(lodge, token).status_code == 201
        lodge.clock.advance(1)
    with lodge.engine.context.database.read() as connection:
        count = connection.exec_driver_sql("select count(*) from lodger_sessions").scalar()
    assert count == sessions.MAX_SESSIONS


def test_neither_token_nor_session_is_stored(lodge: RunningApi) -> None:
    token = lodge.token("editor", "acme")
    cookie = login(lodge, token).headers["set-cookie"].partition("=")[2].partition(";")[0]
    with lodge.engine.context.database.read() as connection:
        tables = connection.exec_driver_sql("select name from sqlite_master where type = 'table'").scalars().all()
        everything = str([connection.exec_driver_sql(f"select * from {table}").all() for table in tables])
    assert token not in everything
    assert token.split("_", 2)[2] not in everything, "the part that is kept secret"
    assert cookie not in everything


def test_brute_force_is_slowed_by_address_and_right_tokens_pass(tmp_path: Path) -> None:
    with running_api(f"sqlite:///{tmp_path / 'l.db'}", api_failures_per_minute=5) as lodge:
        lodge.furnish()
        right = lodge.token("admin")
        wrong = right[:-4] + "AAAA"
        answers = [
            lodge.http.get(f"{lodge.url}/api/v1/me", headers={"authorization": f"Bearer {wrong}"}) for _ in range(30)
        ]
        statuses = [answer.status_code for answer in answers]
        assert statuses[:5] == [401] * 5
        assert 429 in statuses
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.json()["code"] == "too_many_failures"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        for _ in range(30):
            assert lodge.ask("GET", "/me").status_code == 200, "the neighbour's wrong tokens lock out no right one"
        assert login(lodge, right).status_code == 201
        assert lodge.http.get(f"{lodge.url}/api/v1/me").status_code == 200, "nor a right session"
        assert 429 in {login(lodge, wrong).status_code for _ in range(10)}, "the login is no way around"
        lodge.http.cookies.clear()
        cookies = [{"cookie": "lodger=" + letter * 43} for letter in "ABCDEFGHIJ"]
        guessed = {lodge.http.get(f"{lodge.url}/api/v1/me", headers=each).status_code for each in cookies}
        assert 429 in guessed, "sessions are guessed no faster than tokens"


def test_a_wrong_token_is_explained(lodge: RunningApi) -> None:
    answer = lodge.http.get(f"{lodge.url}/api/v1/me", headers={"authorization": "Bearer lodger_x"})
    body = answer.json()
    assert (answer.status_code, body["code"]) == (401, "token_invalid")
    assert body["detail"] == "the token is unknown or revoked"
    assert "lodger token create" in body["fix"]


def test_requests_of_a_token_are_limited_and_another_is_not_slowed(tmp_path: Path) -> None:
    with running_api(f"sqlite:///{tmp_path / 'l.db'}", api_requests_per_minute=60) as lodge:
        lodge.furnish()
        answers = [lodge.ask("GET", "/me", role="viewer", tenant="acme") for _ in range(60)]
        assert {answer.status_code for answer in answers} == {200}
        refused = refusal(lodge, "viewer", "acme")
        assert refused.json()["code"] == "too_many_requests"
        assert int(refused.headers["retry-after"]) >= 1
        assert lodge.ask("GET", "/me").status_code == 200, "another token is not slowed"
        until(lambda: lodge.ask("GET", "/me", role="viewer", tenant="acme").status_code == 200, 20)


def refusal(lodge: RunningApi, role: str, tenant: str) -> httpx2.Response:
    """Send requests until one is refused as too many; return the refusal."""
    for _ in range(20_000):
        answer = lodge.ask("GET", "/me", role=role, tenant=tenant)
        if answer.status_code == 429:
            return answer
    raise AssertionError("nothing was refused")


def test_the_tokens_of_a_tenant_share_its_limit(tmp_path: Path) -> None:
    with running_api(f"sqlite:///{tmp_path / 'l.db'}", api_tenant_requests_per_minute=60) as lodge:
        lodge.furnish()
        lodge.furnish("other")
        for _ in range(30):
            assert lodge.ask("GET", "/me", role="viewer", tenant="acme").status_code == 200
        assert refusal(lodge, "editor", "acme").json()["detail"].startswith("all tokens of a tenant together")
        assert lodge.ask("GET", "/me", role="viewer", tenant="other").status_code == 200, "another tenant is not slowed"
        assert lodge.ask("GET", "/me").status_code == 200, "nor a platform's token"


NO_TOKENS = (
    "", "Bearer", "Basic YWRtaW46YWRtaW4=", "bearer lodger_", "Bearer null", "Bearer ' OR 1=1 --",
    "Bearer eyJhbGciOiJub25lIn0.eyJyb2xlIjoiYWRtaW4ifQ.", "Bearer " + "a" * 5000, "Bearer \u00e9",
)  # fmt: skip


def test_what_is_no_token(lodge: RunningApi) -> None:
    for authorization in NO_TOKENS:
        answer = lodge.http.get(f"{lodge.url}/api/v1/me", headers={"authorization": authorization.encode("latin-1")})
        assert answer.status_code in {400, 401}, authorization
        assert answer.json()["code"] in {"token_invalid", "header_invalid", "token_missing"}, authorization
    token = lodge.token("admin").encode()
    answer = lodge.raw(
        b"GET /api/v1/me HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer x\r\nAuthorization: Bearer "
        + token
        + b"\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 400")


def test_a_token_says_when_it_was_used(lodge: RunningApi) -> None:
    def stamp() -> datetime | None:
        return lodge.engine.tokens.list("acme")[0].used_at

    def noted(since: datetime | None) -> bool:
        # It is written beside the answer, not before it.
        return any(stamp() != since or not lodge.http.get(f"{lodge.url}/healthz").content for _ in range(2000))

    lodge.token("viewer", "acme")
    lodge.ask("GET", "/me", role="viewer", tenant="acme")
    assert noted(None)
    used = stamp()
    assert used is not None
    lodge.clock.advance(30)
    lodge.ask("GET", "/me", role="viewer", tenant="acme")
    assert stamp() == used, "told to the minute"
    lodge.clock.advance(31)
    lodge.ask("GET", "/me", role="viewer", tenant="acme")
    assert noted(used)
    assert stamp() > used

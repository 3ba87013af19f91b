"""HTTP as its standards say: conditional reads, places of what was made, encodings, charsets, other origins, what is left of a rate."""

import gzip

import pytest
from tests.api.running_api import RunningApi, running_api

from lodger.engine.server.app import Api
from lodger.engine.service.async_engine import Engine as AsyncEngine


def test_a_read_of_what_the_client_has_is_304(lodge: RunningApi) -> None:
    for path in ("/tenants/acme", "/tenants/acme/schedules/s", "/tenants/acme/scripts/job"):
        first = lodge.ask("GET", path)
        for known in (first.headers["etag"], f'"other", W/{first.headers["etag"]}', "*"):
            again = lodge.ask("GET", path, headers={"if-none-match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
        assert lodge.ask("GET", path, headers={"if-none-match": '"other"'}).status_code == 200


def test_what_was_made_has_a_place_and_a_tag_in_the_replayed_answer_too(lodge: RunningApi) -> None:
    made = {
        "/tenants": {"tenant_id": "a b"},
        "/tenants/acme/schedules": {"name": "ü", "script": "job", "rules": "every 60s"},
        "/tenants/acme/run-in": {"script": "job", "delay": "60s"},
    }
    for path, body in made.items():
        first, second = (lodge.ask("POST", path, body, headers={"idempotency-key": f"k{len(path)}"}) for _ in range(2))
        assert first.status_code == 201, first.text
        assert second.headers["idempotent-replayed"] == "true"
        assert first.headers["location"] == second.headers["location"]
        assert first.headers.get("etag") == second.headers.get("etag")
        found = lodge.http.get(lodge.url + first.headers["location"], headers=lodge.bearer())
        assert found.json()["id"] == first.json()["id"]
        assert found.headers.get("etag") == first.headers.get("etag")
    token = lodge.ask("POST", "/tokens", {"name": "t", "role": "viewer", "tenant_id": "acme"})
    assert lodge.http.get(lodge.url + token.headers["location"], headers=lodge.bearer()).json()["name"] == "t"


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({"content-encoding": "gzip"}, gzip.compress(b"{}", mtime=0), 415, "content_encoding"),
        ({"content-encoding": "br"}, b"{}", 415, "content_encoding"),
        ({"content-type": "application/json; charset=iso-8859-1"}, '{"a": "é"}'.encode("latin-1"), 415, "media_type"),
        ({"content-type": "application/json; charset=UTF-8"}, b"[", 400, "json_not_json"),
        (
            {"content-type": 'application/json; charset="utf-8"', "content-encoding": "identity"},
            b"[",
            400,
            "json_not_json",
        ),
    ],
)
def test_bodies_in_other_encodings_are_refused(
    steady: RunningApi, headers: dict[str, str], body: bytes, status: int, code: str
) -> None:
    sent = steady.bearer() | {"content-type": "application/json"} | headers
    answer = steady.http.put(f"{steady.url}/api/v1/tenants/acme/scripts/x", content=body, headers=sent)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_pages_of_named_origins_may_call_and_read_what_is_left(tmp_path: object) -> None:
    with running_api(
        f"sqlite:///{tmp_path}/ledger.db", api_cors_origins="https://app.example", api_requests_per_minute=3
    ) as lodge:
        wish = {
            "access-control-request-method": "PUT",
            "access-control-request-headers": "authorization,if-match,content-type",
        }
        url = f"{lodge.url}/api/v1/me"
        asked = lodge.http.options(url, headers={"origin": "https://app.example"} | wish)
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, "https://app.example")
        other = lodge.http.options(url, headers={"origin": "https://evil.example"} | wish)
        assert (other.status_code, "access-control-allow-origin" in other.headers) == (400, False)
        answers = [lodge.http.get(url, headers=lodge.bearer() | {"origin": "https://app.example"}) for _ in range(4)]
        assert [each.status_code for each in answers] == [200, 200, 200, 429]
        assert [each.headers["ratelimit-remaining"] for each in answers] == ["2", "1", "0", "0"]
        for each in answers:
            assert each.headers["access-control-allow-origin"] == "https://app.example"
            assert "RateLimit-Remaining" in each.headers["access-control-expose-headers"]
            assert (each.headers["ratelimit-limit"], each.headers["ratelimit-policy"]) == ("3", "3;w=60")
        assert 1 <= int(answers[3].headers["retry-after"]) <= int(answers[3].headers["ratelimit-reset"]) <= 60
        with_no_cors = lodge.http.get(url, headers=lodge.bearer())
        assert "access-control-allow-origin" not in with_no_cors.headers


def test_the_api_of_an_asynchronous_engine(lodge: RunningApi) -> None:
    assert Api(AsyncEngine(lodge.engine)).engine is lodge.engine

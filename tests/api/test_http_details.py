"""HTTP as its standards say, addresses behind a reverse proxy, reads from a replica, and the metrics of the API."""

import gzip
import logging
from pathlib import Path

import pytest
from tests.api.running_api import RunningApi, running_api
from tests.databases.fixtures import kind, url

from lodger.engine.core.access.roles import Role
from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.server.app import Api
from lodger.engine.server.server import Server
from lodger.engine.service.async_engine import Engine as AsyncEngine
from lodger.engine.store.connection import backups
from lodger.engine.sync import Engine


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
        ({"content-type": "application/json; charset=iso-8859-1"}, b"", 400, "request_invalid"),
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


def test_reads_ask_the_replica_and_writes_and_tokens_the_ledger(tmp_path: Path) -> None:
    url, copy = f"sqlite:///{tmp_path / 'ledger.db'}", f"sqlite:///{tmp_path / 'copy.db'}"
    with Engine.open(url) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "export default () => 1")
        engine.schedules.create("acme", "before", script="job", rules="every 60s")
    backups.backup(url, tmp_path / "copy.db")
    with running_api(url, read_database=copy) as lodge:
        made = lodge.ask("POST", "/tenants/acme/schedules", {"name": "after", "script": "job", "rules": "every 60s"})
        assert made.status_code == 201, "its token, which the replica has not yet, is known"
        listed = lodge.ask("GET", "/tenants/acme/schedules").json()["items"]
        assert [each["name"] for each in listed] == ["before"]
        changed = lodge.ask("POST", "/tenants/acme/schedules/after/pause", {})
        assert changed.status_code == 200, "a change reads what it changes from the ledger"
        assert [each.name for each in lodge.engine.schedules.list("acme")] == ["after", "before"]


def test_reads_are_never_answered_from_a_database_that_is_no_replica_of_the_ledger(tmp_path: Path) -> None:
    url, other = (f"sqlite:///{tmp_path / name}.db" for name in ("ledger", "other"))
    for each in (url, other):
        Engine.open(each).close()
    (tmp_path / "empty.db").touch()
    for place in (other, f"sqlite:///{tmp_path / 'empty.db'}"):
        with running_api(url, read_database=place) as lodge:
            refused = lodge.ask("GET", "/tenants")
            assert (refused.status_code, refused.json()["code"]) == (503, "ledger_other")
            assert lodge.ask("POST", "/tenants", {"tenant_id": "acme"}).status_code in {201, 409}, (
                "changes use the ledger"
            )
    for place in (f"sqlite:///{tmp_path / 'absent.db'}", "postgresql://db.example/ledger"):
        with pytest.raises(Unavailable, match="is not a replica of this ledger"):
            Engine.open(url, settings=Settings(read_database=place))
    assert not (tmp_path / "absent.db").exists()


__all__ = ["kind", "url"]


def test_requests_connections_versions_and_tenants_are_measured(url: str) -> None:
    with running_api(url, metrics_tenants=1) as lodge:
        lodge.engine.tenants.create("acme")
        token = lodge.engine.tokens.create("all", Role.ADMIN).text
        bearer = {"Authorization": f"Bearer {token}"}
        lodge.http.get(f"{lodge.url}/api/v1/tenants/acme", headers=bearer)
        lodge.http.get(f"{lodge.url}/api/v1/tenants/nobody", headers=bearer)
        lodge.http.get(f"{lodge.url}/api/v1/no/such/route/of/a/client", headers=bearer)
        for number in range(3):
            assert (
                lodge.http.request(f"M{number}", f"{lodge.url}/api/v1/tenants/acme", headers=bearer).status_code == 405
            )
        text = lodge.http.get(f"{lodge.url}/api/v1/metrics/text", headers=bearer).text
    found = {
        name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    }
    route = 'route="GET /api/v1/tenants/{tenant_id}"'
    assert found[f'lodger_http_requests_total{{{route},status="200"}}'] == 1
    assert found[f'lodger_http_requests_total{{{route},status="404"}}'] == 1
    assert found['lodger_http_requests_total{route="other",status="404"}'] == 1
    assert found[f"lodger_http_request_seconds_count{{{route}}}"] == 2
    assert found["lodger_http_limited_total"] == 0
    assert found["lodger_database_transactions_total"] > 5
    assert found['lodger_database_connections{state="in_use"}'] >= 0
    assert any(name.startswith("lodger_build_info{") for name in found)
    assert 'le="14400.0"' in text
    assert found['lodger_http_requests_total{route="other",status="405"}'] >= 3
    assert not any(word in text for word in ("no/such/route", "M0", "M1", "M2"))


WRONG = {"authorization": "Bearer lodger_x"}


def statuses_of_guesses(lodge: RunningApi, number: int, **headers: str) -> list[int]:
    """Return the statuses of so many requests with a wrong token."""
    return [lodge.http.get(f"{lodge.url}/api/v1/me", headers=WRONG | headers).status_code for _ in range(number)]


@pytest.mark.parametrize("trusted", ["127.0.0.1", "127.0.0.0/8", "127.0.0.9/8", "*"])
def test_clients_of_a_trusted_proxy_are_counted_by_their_own_address(tmp_path: Path, trusted: str) -> None:
    with running_api(f"sqlite:///{tmp_path / 'l.db'}", api_failures_per_minute=3, trusted_proxies=trusted) as lodge:
        assert 429 in statuses_of_guesses(lodge, 20, **{"x-forwarded-for": "192.0.2.1"})
        assert statuses_of_guesses(lodge, 1, **{"x-forwarded-for": "192.0.2.2"}) == [401]
        secure = lodge.http.get(f"{lodge.url}/healthz", headers={"x-forwarded-proto": "https"})
        assert "strict-transport-security" in secure.headers


def test_an_untrusted_address_is_not_believed_and_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_api(f"sqlite:///{tmp_path / 'l.db'}", api_failures_per_minute=3, trusted_proxies="10.0.0.1") as lodge:
        assert [record for record in caplog.records if record.name == "lodger.api"] == []
        with caplog.at_level(logging.WARNING, "lodger.api"):
            assert 429 in statuses_of_guesses(lodge, 20, **{"x-forwarded-for": "192.0.2.1"})
            assert 429 in statuses_of_guesses(lodge, 3, **{"x-forwarded-for": "192.0.2.2"}), (
                "it names itself as it likes"
            )
            plain = lodge.http.get(f"{lodge.url}/healthz", headers={"x-forwarded-proto": "https"})
        assert "strict-transport-security" not in plain.headers
        warned = [text for record in caplog.records if "X-Forwarded" in (text := record.getMessage())]
        assert len(warned) == 1
        assert "127.0.0.1" in warned[0]
        assert "LODGER_TRUSTED_PROXIES=127.0.0.1" in warned[0]


@pytest.mark.parametrize("wrong", ["proxy.example", "10.0.0.0/33", "10.0.0.1 10.0.0.2", "/run/proxy.sock"])
def test_a_trusted_proxy_that_is_no_address_is_refused(tmp_path: Path, wrong: str) -> None:
    settings = Settings(trusted_proxies=f"127.0.0.1, {wrong}")
    with Engine.open(f"sqlite:///{tmp_path / 'l.db'}", settings=settings) as engine:
        with pytest.raises(InputError) as refused:
            Server(engine)
        assert refused.value.code == "trusted_proxies_invalid"
        assert wrong in str(refused.value)

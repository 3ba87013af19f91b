"""Connections: tokens that the engine gets and renews, against a provider on loopback; consents, refusals and hostile answers."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from sqlalchemy import select, update
from tests.api.running_api import serving
from tests.egress.peer import opened, thread_of_peers
from tests.features.connections.provider import CLIENT, PASSWORD, Provider

from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.execution import Answer
from lodger.engine.features.connections import tokens
from lodger.engine.features.connections.connections import connections, find
from lodger.engine.store.records import Action
from lodger.engine.sync import Engine
from lodger.engine.vault.keyring import Keyring
from lodger.engine.web.dashboard import Dashboard

SOURCE = """
export default async ({ fetch, secrets, kv }) => {
  const answer = await fetch(URL_OF_API, { headers: { authorization: `Bearer ${secrets.crm}` } });
  const text = await answer.text();
  console.log(text, `${secrets.crm}`);
  return text;
};
"""


ODD_ANSWERS = (
    b"[]",
    b'{"access_token":7}',
    b'{"access_token":"a\\nb-long-enough"}',
    b"{" * 60_000,
    b'{"token_type":"mac","access_token":"long-enough-token"}',
)


class ConnectedTenant:
    """An engine with a tenant whose script uses a connection to a provider."""

    def __init__(self, engine: Engine, provider: Provider) -> None:
        self.engine, self.provider = engine, provider

    def put(self, tenant_id: str = "acme", **more: Any) -> Any:
        given: dict[str, Any] = {"token_url": self.provider.peer.url("/token"), "client_id": CLIENT}
        given |= {"client_secret": PASSWORD, "hosts": [self.host], "grant": True}
        return self.engine.connections.put(tenant_id, "crm", **(given | more))

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self.provider.peer.port}"

    def run(self, tenant_id: str = "acme") -> Action:
        """Run the script on the running node until it has ended."""
        return self.ended(self.engine.run_in(tenant_id, "job", 0))

    def ended(self, asked: Action) -> Action:
        """Wait for the end of a run."""
        for change in self.engine.live(asked.tenant_id, asked.id):
            if getattr(change, "state", "") in {"done", "failed"}:
                break
        return self.engine.actions.get(asked.tenant_id, asked.id)

    def sql(self, **values: Any) -> None:
        """Set columns of all connections."""
        with self.engine.context.database.write() as connection:
            connection.execute(update(connections).values(values))

    def expire(self) -> None:
        self.sql(expires_us=1)

    def error(self, action: Action) -> tuple[str, str]:
        """Return code and message of an action's last error."""
        error = self.engine.actions.attempts(action.tenant_id, action.id)[-1].error
        assert error is not None
        return str((error.details or {}).get("code")), error.message


@contextmanager
def connected_tenant(url: str, tmp_path: Path, **settings: Any) -> Iterator[ConnectedTenant]:
    """Open an engine and a provider for the block."""
    provider = Provider()
    if not (tmp_path / "keys").exists():
        Keyring(tmp_path / "keys").add()
    with thread_of_peers(provider.peer):
        given = {
            "secret_keys": tmp_path / "keys",
            "profile": "trusted",
            "check_scripts": False,
            "api_port": 0,
        } | settings
        with Engine.open(url, settings=opened(provider.peer, **given)) as engine:
            made = ConnectedTenant(engine, provider)
            for tenant in ("acme", "other"):
                engine.tenants.create(tenant, grants=[f"fetch:{made.host}"])
                source = SOURCE.replace("URL_OF_API", json.dumps(provider.peer.url("/deals")))
                engine.scripts.put(tenant, "job", source)
            yield made


def test_a_script_uses_tokens_that_the_engine_renews_and_never_sees_them(url: str, tmp_path: Path) -> None:
    with connected_tenant(url, tmp_path) as made, made.engine.node():
        made.put()
        first = made.run()
        assert (first.state, first.result) == (
            "done",
            "you said [secret crm]",
        ) or first.result == '"you said [secret crm]"'
        assert made.provider.served == ["access-token-1"]
        made.run()
        assert len(made.provider.asked) == 1, "a valid token is used again"
        made.expire()
        made.run()
        assert made.provider.served[-1] == "access-token-2"
        with ThreadPoolExecutor(4) as threads:
            made.expire()
            assert {each.state for each in threads.map(lambda _n: made.run(), range(4))} == {"done"}
        assert len(made.provider.asked) == 3, "four runs at once renew it once"
        shown = json.dumps([str(each) for each in (
            made.engine.actions.logs("acme", first.id), made.engine.actions.list("acme"), made.engine.audit.list("acme"),
            made.engine.connections.list("acme"), made.engine.actions.attempts("acme", first.id),
        )])  # fmt: skip
        with made.engine.context.database.read() as connection:
            shown += str(connection.execute(select(connections)).all())
        assert [word for word in ("access-token", "refresh-token", PASSWORD) if word in shown] == []
        refused = made.run("other")
        assert refused.state == "failed", "another tenant has no such connection"
        assert made.engine.grants.give("other", "secret:crm")
        assert made.error(made.run("other"))[0] == "secret_unknown"
        made.engine.secrets.rotate(new_key=True, drop=True)
        assert made.run().state == "done"


def test_a_person_consents_and_the_grant_is_renewed_until_it_is_revoked(url: str, tmp_path: Path) -> None:
    with connected_tenant(url, tmp_path) as made, serving(made.engine) as server, made.engine.node():
        here = server.url
        events = made.engine.webhooks
        events.put("acme", "hook", made.provider.peer.url("/events"), events=["lodger.*"])
        given = {"authorize_url": "https://id.example.com/authorize?a=1", "redirect_uri": here + "/oauth/callback"}
        made.put(**given, scopes=["deals.read"])
        assert made.error(made.run())[0] == "connection_waiting"
        link = made.engine.connections.consent("acme", "crm").url
        assert link.startswith(here + "/oauth/start/")
        with httpx2.Client() as browser, httpx2.Client() as thief:
            sent = browser.get(link)
            assert (sent.status_code, browser.get(link).status_code) == (303, 404), "a link is valid once"
            place = urlsplit(sent.headers["location"])
            asked = {name: values[0] for name, values in parse_qs(place.query).items()}
            assert (place.hostname, asked["client_id"], asked["scope"], asked["code_challenge_method"], asked["a"]) == (
                "id.example.com", CLIENT, "deals.read", "S256", "1",
            )  # fmt: skip
            assert asked["redirect_uri"] == given["redirect_uri"]
            assert "HttpOnly" in sent.headers["set-cookie"]
            made.provider.consent("code-1", asked["code_challenge"])
            back = f"{here}/oauth/callback?code=code-1&state="
            assert thief.get(back + asked["state"]).status_code == 404, "without the browser's cookie"
            assert browser.get(back + "x" * 43).status_code == 404
            assert made.provider.asked == []
            done = browser.get(back + asked["state"])
            assert (done.status_code, done.text) == (200, "Connected. This window can be closed.\n")
            assert browser.get(back + asked["state"]).status_code == 404, "an answer is taken once"
            denied = made.engine.connections.consent("acme", "crm").url
            state = parse_qs(urlsplit(browser.get(denied).headers["location"]).query)["state"][0]
            said = browser.get(f"{here}/oauth/callback?error=%3Cscript%3E&state={state}")
            assert (said.status_code, "script" in said.text) == (400, False)
        assert made.run().state == "done", "a consent that failed changes nothing"
        made.expire()
        assert made.run().state == "done"
        assert made.provider.asked[-1]["refresh_token"] == "refresh-token-1"
        made.expire()
        assert made.run().state == "done"
        assert made.provider.asked[-1]["refresh_token"] == "refresh-token-2", "the rotated one"
        with httpx2.Client() as browser:
            link = browser.get(made.engine.connections.consent("acme", "crm").url).headers["location"]
            asked = {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}
            made.provider.consent("code-2", asked["code_challenge"])
            made.expire()
            assert made.run().state == "done"
            done = browser.get(f"{here}/oauth/callback?code=code-2&state={asked['state']}")
            assert done.status_code == 200, "a consent goes on when a run renews the token meanwhile"
        made.provider.refresh = None
        made.expire()
        code, message = made.error(made.run())
        assert (code, "invalid_grant" in message, "lodger connection consent TENANT crm" in message) == (
            "connection_revoked", True, True,
        )  # fmt: skip
        count = len(made.provider.asked)
        assert made.error(made.run())[0] == "connection_revoked"
        assert len(made.provider.asked) == count, "a revoked grant is not asked for again"
        found = made.engine.connections.get("acme", "crm")
        assert (found.state, found.problem) == ("revoked", "the provider answered 400, invalid_grant")
        Dashboard(server.api).add()
        made.engine.schedules.create("acme", "nightly", script="job", rules="every 30d")
        with httpx2.Client(base_url=here, headers={"accept": "text/html"}) as browser:
            token = made.engine.tokens.create("ann", "editor", tenant_id="acme").text
            browser.post("/api/v1/session", json={"token": token}).raise_for_status()
            made.ended(made.engine.actions.run_now("acme", "nightly"))
            page = browser.get("/t/acme/schedules/nightly").text
            assert "lodger connection consent TENANT crm" in page, "the schedule says what to do"
            page = browser.get("/t/acme/settings").text
            assert re.search('class="state revoked".*POST /tenants/acme/connections/crm/consent"', page)


def test_what_providers_answer_otherwise(tmp_path: Path) -> None:
    with connected_tenant(str(tmp_path / "ledger.db"), tmp_path) as made, made.engine.node():
        made.put()
        made.provider.instead = [("503 Service Unavailable", b"busy"), ("429 Too Many Requests", b"{}")]
        assert made.run().state == "done", "a provider that was away is asked again"
        for answers in ([], [("400 Bad Request", b'{"error":"invalid_grant"}')]):
            made.put(scopes=["a"])
            made.provider.before, made.provider.instead = (
                partial(made.put, scopes=["a"], client_secret="newer"),
                answers,
            )
            made.run()
            made.provider.before = None
            with made.engine.context.database.read() as connection:
                kept = find(made.engine.vault, connection, "acme", "crm")
            assert kept is not None
            assert (kept.about.state, kept.kept.client_secret) == ("waiting", "newer"), "replaced while it was renewed"
        made.put(client_secret="wrong")
        code, message = made.error(made.run())
        assert (code, "invalid_client" in message) == ("connection_failed", True)
        made.put()
        for body in ODD_ANSWERS:
            made.provider.instead = [("200 OK", body)]
            assert made.error(made.run())[0] == "connection_failed"
        assert made.run().state == "done", "the next run asks again"
        made.expire()
        made.provider.instead = [("302 Found", b"")]
        assert made.error(made.run())[0] == "connection_failed", "no redirect is followed"
        made.put(token_url="https://10.0.0.1/token")
        code, message = made.error(made.run())
        assert (code, "not allowed" in message, "10.0" in message) == (
            "connection_failed",
            True,
            False,
        )
        made.put(hosts=["api.example.com"])
        assert made.run().state == "failed", "a token goes to the hosts of its connection only"
        assert made.provider.served[-1].startswith("access-token")
        made.put()
        with made.engine.context.database.read() as connection:
            settings = json.loads(connection.scalar(select(connections.c.settings)) or "")
        made.sql(settings=json.dumps(settings | {"token_url": made.provider.peer.url("/elsewhere")}, sort_keys=True))
        assert made.error(made.run())[0] == "secret_unavailable", (
            "a row that was edited in the database gives nothing away"
        )


@pytest.mark.parametrize(
    ("given", "lasts"),
    [
        (3600, 3600), ("3600", 3600), (1800.5, 1800), (None, 300), ("soon", 300), (True, 300), ([], 300), (-5, 60), (0, 60),
        (10**12, 86_400), ("9" * 11, 86_400), ("9" * 50, 300), (float("nan"), 300), (float("inf"), 86_400),
    ],
)  # fmt: skip
def test_how_long_a_token_is_used(given: Any, lasts: int) -> None:
    body = json.dumps({"access_token": "long-enough-token", "expires_in": given}).encode()
    read = tokens.read(Answer(200, "OK", "", (), body, redirected=False, sent_bytes=0, received_bytes=0))
    assert isinstance(read, tokens.Tokens)
    assert read.lasts_s == lasts


def test_what_is_no_connection_is_refused(tmp_path: Path) -> None:
    with connected_tenant(str(tmp_path / "ledger.db"), tmp_path) as made:
        consent = {"authorize_url": "https://id.example.com/", "redirect_uri": "https://me.example.com/oauth/callback"}
        odd: tuple[dict[str, Any], ...] = (
            {"token_url": "ftp://id.example.com/"}, {"token_url": "https://id.example.com/#x"}, {"client_id": "a b"}, {"hosts": []},
            {"scopes": ["a" * 50] * 100}, consent | {"redirect_uri": "https://me.example.com/?x=/oauth/callback"},
            {"token_url": "http://id.example.com/"}, consent | {"authorize_url": "http://10.0.0.1/"},
            {"hosts": ["*"]}, {"hosts": ["*:8443"]},
            {"hosts": ["*.com"]}, {"hosts": ["http://api.example.com"]}, {"token_url": "http://127.0.0.1.example.com/"},
            {"hosts": ["no where"]}, {"auth": "none"}, {"scopes": ["a b"]}, {"authorize_url": "https://id.example.com/"},
            consent | {"redirect_uri": "https://evil.example.com/take"}, consent | {"authorize_url": "javascript:alert(1)"},
        )  # fmt: skip
        for wrong in odd:
            with pytest.raises(InputError):
                made.put(**wrong)
        assert made.engine.connections.list("acme") == []
        with pytest.raises(NotFound):
            made.engine.connections.consent("acme", "crm")
        made.put()
        with pytest.raises(Conflict) as needless:
            made.engine.connections.consent("acme", "crm")
        assert needless.value.code == "connection_without_consent"
        made.engine.connections.delete("acme", "crm")
        made.engine.secrets.put("acme", "crm", "a value of some length")
        with pytest.raises(Conflict, match="name of a secret"):
            made.put()

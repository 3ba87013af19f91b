"""Requests to URLs of scripts: one action a delivery, refused alike where the URL is unknown, bounded, signed where asked."""

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import text
from tests.api.request_keys import run_in_threads
from tests.api.running_api import SETTINGS, RunningApi, running_api, serving
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.events import Event
from lodger.engine.core.settings import Settings
from lodger.engine.egress import signature
from lodger.engine.features.script_urls import answers
from lodger.engine.server.problems import Refused
from lodger.engine.store.actions import later_runs
from lodger.engine.store.records import Action
from lodger.engine.sync import Engine
from lodger.engine.vault.keyring import Keyring

SECRET = signature.new_secret()
LIMIT = 40


@pytest.fixture
def lodge(tmp_path: Path) -> Iterator[RunningApi]:
    """A running API with a tenant that has a script and a secret."""
    with furnished(f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path) as made:
        yield made


@pytest.fixture
def either(url: str, tmp_path: Path) -> Iterator[RunningApi]:
    """The same on each database."""
    with furnished(url, tmp_path) as made:
        yield made


@contextmanager
def furnished(url: str, tmp_path: Path) -> Iterator[RunningApi]:
    """Open a running API for the block, with a tenant that has a script and a secret."""
    Keyring(tmp_path / "keys").add()
    settings = {"secret_keys": tmp_path / "keys", "api_url_requests_per_minute": LIMIT, "api_failures_per_minute": 60}
    with running_api(url, **settings) as made:
        made.furnish()
        made.engine.secrets.put("acme", "SIGNING", SECRET)
        yield made


def post(
    lodge: RunningApi, path: str, body: bytes | str = b"", method: str = "POST", **headers: str
) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lodge.http.request(method, lodge.url + path, content=body, headers=named)


def action_of(lodge: RunningApi, answer: httpx2.Response) -> Action:
    """Return the action that a request was answered with."""
    assert answer.status_code == 202, answer.text
    return lodge.engine.actions.get("acme", answer.json()["action_id"])


def test_a_request_becomes_one_action_with_the_request_as_its_input(either: RunningApi, url: str) -> None:
    lodge = either
    urls = lodge.engine.urls
    made = urls.create("acme", "shop", "job", headers=["X-Kind"])
    first = action_of(
        lodge,
        post(lodge, made.path + "?a=1&a=%C3%A9", '{"n": [1, "é"]}', content_type="application/json; charset=utf-8", x_kind="order",
             cookie="lodger=secret", authorization="Bearer x", idempotency_key="one"),
    )  # fmt: skip
    assert first.params == {
        "method": "POST", "query": "a=1&a=%C3%A9", "json": {"n": [1, "é"]}, "text": '{"n": [1, "é"]}',
        "headers": {"content-type": "application/json; charset=utf-8", "x-kind": "order"},
    }  # fmt: skip
    assert (first.requested_by, first.origin, first.state, first.script) == ("url shop", "once", "ready", "job")
    again = action_of(lodge, post(lodge, made.path, "other", idempotency_key="one"))
    assert again.id == first.id, "a repeated delivery runs once"

    said: list[str] = []
    run_in_threads(lambda _number: said.append(post(lodge, made.path, idempotency_key="two").json()["action_id"]), 6)
    assert (len(said), len(set(said))) == (6, 1), "of many at once, too"

    for body, kind, shown in (
        (b"", "application/json", {}),
        (b"a=1", "application/x-www-form-urlencoded", {"text": "a=1"}),
        (b"\xff\x00", "application/octet-stream", {"base64": "/wA="}),
        (b"{", "application/json", {"text": "{"}),
        (
            b' {"id":12345678901234567890,"a":9007199254740991,"b":-9007199254740993,"c":0.1,"e":0.12345678901234567891}',
            "application/json",
            {
                "text": ' {"id":12345678901234567890,"a":9007199254740991,"b":-9007199254740993,"c":0.1,"e":0.12345678901234567891}',
                "json": {
                    "id": "12345678901234567890",
                    "a": 9007199254740991,
                    "b": "-9007199254740993",
                    "c": 0.1,
                    "e": "0.12345678901234567891",
                },
            },
        ),
        (
            b"[1e-400,9007199254740993.5,1e-99999999999999999999,1.50,1e3,-0.0]",
            "application/json",
            {
                "text": "[1e-400,9007199254740993.5,1e-99999999999999999999,1.50,1e3,-0.0]",
                "json": [
                    "1e-400",
                    "9007199254740993.5",
                    "1e-99999999999999999999",
                    1.5,
                    1000,
                    0,
                ],
            },
        ),
        (b"[1E99999999999999999999]", "application/json", {"text": "[1E99999999999999999999]"}),
        (b'"\\ud800"', "application/json", {"text": '"\\ud800"'}),
        (b'{"a":1,"a":2}', "application/problem+json", {"text": '{"a":1,"a":2}'}),
        (b"[" * 100 + b"]" * 100, "application/json", {"text": "[" * 100 + "]" * 100}),
    ):
        params = action_of(lodge, post(lodge, made.path, body, content_type=kind)).params
        assert isinstance(params, dict)
        assert {name: params[name] for name in params if name not in ("method", "query", "headers")} == shown

    assert post(lodge, made.path, method="GET").status_code == 405
    both = urls.create("acme", "ping", "job", get=True)
    assert action_of(lodge, post(lodge, both.path + "?x", method="GET")).params == {
        "method": "GET",
        "query": "x",
        "headers": {},
    }

    # Another process runs it: there is only the ledger between them.
    with Engine.open(url, clock=lodge.clock) as other:
        claimed = Bench(other, lodge.clock).claim()
    assert first.id in {each.action_id for each in claimed}

    # Only a hash is stored; the audit log has the creation and the revocation, and no secret.
    urls.revoke("acme", "ping")
    with lodge.engine.context.database.read() as connection:
        rows = str(connection.execute(text("SELECT * FROM lodger_script_urls")).all())
    logged = [each for each in lodge.engine.audit.list("acme") if each.verb.startswith("urls.")]
    assert [each.verb for each in logged] == ["urls.revoke", "urls.create", "urls.create"]
    for secret in (made.path, both.path):
        assert secret.rpartition("/")[2] not in rows + str(logged)
    assert [(each.name, each.used_at is not None) for each in urls.list("acme")] == [("shop", True)]


def test_urls_that_are_not_there_are_refused_alike(lodge: RunningApi) -> None:
    engine, paths = lodge.engine, {}
    paths["unknown"] = "/api/v1/in/" + "a" * 43
    paths["no token"] = "/api/v1/in/short"
    paths["revoked"] = engine.urls.create("acme", "gone", "job").path
    engine.urls.revoke("acme", "gone")
    soon = from_us(lodge.clock.us) + timedelta(seconds=60)
    paths["expired"] = engine.urls.create("acme", "late", "job", expires_at=soon).path
    assert post(lodge, paths["expired"]).status_code == 202
    lodge.clock.advance(60)
    engine.tenants.create("other")
    engine.scripts.put("other", "job", "export default () => 1")
    paths["suspended"] = engine.urls.create("other", "in", "job").path
    engine.tenants.suspend("other")
    engine.tenants.create("third")
    engine.scripts.put("third", "job", "export default () => 1")
    paths["deleted"] = engine.urls.create("third", "in", "job").path
    engine.tenants.delete("third")
    engine.tenants.create("third")
    engine.scripts.put("third", "job", "export default () => 1")
    answers = {name: post(lodge, path, "x") for name, path in paths.items()}
    assert {each.status_code for each in answers.values()} == {404}
    assert len({each.text for each in answers.values()}) == 1
    assert engine.actions.list("other") == engine.actions.list("third") == []
    engine.tenants.resume("other")
    assert post(lodge, paths["suspended"]).status_code == 202

    for _ in range(60):
        post(lodge, paths["unknown"])
    assert post(lodge, paths["unknown"]).status_code == 429, "guesses are counted by address"


def test_bodies_rates_and_numbers_are_bounded(lodge: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = lodge.engine
    path = engine.urls.create("acme", "shop", "job").path
    large = post(lodge, path, b"x" * (256 * 1024 + 1))
    assert (large.status_code, large.json()["code"]) == (413, "body_too_large")
    encoded = post(lodge, path, b"\xff" * 250_000)
    assert (encoded.status_code, encoded.json()["code"]) == (413, "url_body_too_large")
    deep = post(lodge, path, b"\x01" * 200_000)
    assert deep.status_code == 413, "a text counts as it is stored"
    assert engine.actions.list("acme") == []

    events: list[Event] = []
    engine.on_event(events.append)
    engine.tenants.edit("acme", limits={"later_runs_per_day": 5})
    warned = []
    for _ in range(5):
        assert post(lodge, path).status_code == 202
        warned.append([(each.kind, each.tenant_id, each.details["used"]) for each in events])
    assert warned == [[]] * 3 + [[("budget", "acme", 4)]] * 2, "once, at four fifths"
    assert engine.tenants.usage("acme").days[-1].counts["later_runs"] == 5
    full = post(lodge, path)
    assert (full.status_code, full.json()["code"], int(full.headers["retry-after"]) > 60) == (429, "url_full", True)
    engine.tenants.edit("acme", limits={})
    monkeypatch.setattr(later_runs, "MAX_WAITING", 1)
    assert post(lodge, path).json()["code"] == "url_full"
    monkeypatch.undo()

    engine.scripts.put("acme", "job", "export default () => 1", params={"n": {"type": "integer", "required": True}})
    assert post(lodge, path).json()["code"] == "url_script"

    answers = [post(lodge, path).status_code for _ in range(LIMIT)]
    assert answers[-1] == 429
    engine.scripts.put("acme", "free", "export default () => 1")
    assert post(lodge, engine.urls.create("acme", "second", "free").path).status_code == 202, (
        "each URL has its own rate"
    )


def hmac_hex(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def test_signed_urls_take_signed_requests_once(lodge: RunningApi) -> None:
    engine, now_s, body = lodge.engine, lodge.clock.us // 1_000_000, b'{"paid": true}'

    def headers(style: str, at: int = now_s, secret: str = SECRET, signed: bytes = body) -> dict[str, str]:
        if style == "standard":
            return {name.replace("-", "_"): value for name, value in signature.headers(secret, f"msg_{at}", at, signed)}
        return {"x_hub_signature_256": f"sha256={hmac_hex(secret, signed)}"}

    for style in signature.STYLES:
        path = engine.urls.create("acme", style, "job", signature=style, secret="SIGNING").path
        first = action_of(lodge, post(lodge, path, body, **headers(style)))
        wrong = [
            {}, headers(style, secret=signature.new_secret()), headers(style, signed=b"other"),
            {name: value[:-1] for name, value in headers(style).items()},
        ]  # fmt: skip
        if style != "sha256":
            wrong += [headers(style, now_s - 301), headers(style, now_s + 301)]
            # A captured request that is sent again, even under another key, runs nothing.
            assert action_of(lodge, post(lodge, path, body, **headers(style), idempotency_key="new")).id == first.id
        for each in wrong:
            refused = post(lodge, path, body, **each)
            assert (refused.status_code, refused.json()["code"]) == (401, "signature_invalid")
    github = {**headers("sha256"), "x_github_delivery": "d1"}
    path = engine.urls.create("acme", "github", "job", signature="sha256", secret="SIGNING").path
    assert len({action_of(lodge, post(lodge, path, body, **github)).id for _ in range(2)}) == 1
    path = engine.urls.create("acme", "unusable", "job", signature="standard", secret="SIGNING").path
    for secret in ("no base64", "whsec_sécret", "whsec_=="):
        engine.secrets.put("acme", "SIGNING", secret)
        assert post(lodge, path, body, **headers("standard")).status_code == 401, secret
    engine.secrets.delete("acme", "SIGNING")
    assert post(lodge, path, body, **headers("standard")).status_code == 401
    assert len(engine.actions.list("acme")) == 3


REFUSED: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"name": "a b"}, InputError), ({"headers": ["Cookie"]}, InputError), ({"headers": ["a\r\nb"]}, InputError),
    ({"headers": [f"h{each}" for each in range(21)]}, InputError), ({"signature": "sha256"}, InputError),
    ({"secret": "SIGNING"}, InputError), ({"signature": "md5", "secret": "SIGNING"}, InputError),
    ({"signature": "sha256", "secret": "ABSENT"}, NotFound), ({"script": "absent"}, NotFound), ({"name": "taken"}, Conflict),
    ({"script": "typed"}, InputError), ({"expires_at": from_us(0)}, InputError),
]  # fmt: skip


def test_what_no_url_can_be_is_refused(lodge: RunningApi) -> None:
    lodge.engine.urls.create("acme", "taken", "job")
    lodge.engine.scripts.put("acme", "typed", "export default () => 1", params={"n": {"type": "integer"}})
    for more, error in REFUSED:
        with pytest.raises(error):
            lodge.engine.urls.create("acme", **{"name": "in", "script": "job", **more})
    assert [each.name for each in lodge.engine.urls.list("acme")] == ["taken"]


ANSWERING = """
export default ({ action }) => {
  const { json, query } = action.input;
  const ask = new URLSearchParams(query).get("as");
  if (ask === "challenge") return { status: 200, headers: { "Content-Type": "text/plain", "X-Script-Mine": "é" }, body: json.challenge };
  if (ask === "moved") return { status: 303, headers: { location: "https://shop.example/thanks" } };
  if (ask === "cookie") return { status: 200, headers: { "Set-Cookie": "a=b" } };
  if (ask === "status") return { status: 99 };
  if (ask === "throws") throw new Error("internal");
  if (ask === "none") return;
  if (ask === "text") return "<b>hello</b>";
  return { ok: true };
};
"""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[RunningApi]:
    """A running API with a node, on the machine's clock."""
    settings = Settings(**SETTINGS, profile="trusted", check_scripts=False)
    with (
        Engine.open(f"sqlite:///{tmp_path / 'live.db'}", settings=settings) as engine,
        serving(engine) as server,
        httpx2.Client(timeout=120, trust_env=False) as http,
        engine.node(),
    ):
        engine.tenants.create("acme")
        yield RunningApi(engine, server.api, server.url, VirtualClock(), http)


@pytest.mark.parametrize(
    "name",
    [
        "Set-Cookie", "X-Accel-Redirect", "X-Sendfile", "X-LiteSpeed-Location", "X-Reproxy-URL", "X-Envoy-Immediate-Health-Check-Fail",
        "Surrogate-Control", "Link", "Connection", "Transfer-Encoding", "Content-Length", "Clear-Site-Data", "Service-Worker-Allowed",
        "Alt-Svc", "Strict-Transport-Security", "Access-Control-Allow-Origin", "Refresh", "X-Script-", "X-Script-a b",
    ],
)  # fmt: skip
def test_a_header_that_browsers_or_proxies_obey_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="cannot be sent"):
        answers.response({"status": 200, "headers": {name: "x"}})


def test_a_script_answers_its_sender_where_the_url_says_so(live: RunningApi) -> None:
    lodge, engine = live, live.engine
    engine.scripts.put("acme", "answering", ANSWERING)
    made = engine.urls.create("acme", "hook", "answering", answers=True, origins=["https://Shop.example/"])
    plain = engine.urls.create("acme", "plain", "answering")
    assert made.url.origins == ("https://shop.example",)
    for ask, status, body in (
        ("challenge", 200, "c-1"), ("moved", 303, ""), ("none", 204, ""), ("text", 200, "<b>hello</b>"), ("", 200, '{"ok": true}'),
        ("cookie", 502, "url_answer_invalid"), ("status", 502, "url_answer_invalid"), ("throws", 502, "url_answer_failed"),
    ):  # fmt: skip
        given = {"content_type": "application/json", "origin": "https://shop.example"}
        answer = post(lodge, f"{made.path}?as={ask}", '{"challenge": "c-1"}', **given)
        assert (answer.status_code, answer.json()["code"] if status == 502 else answer.text) == (status, body), ask
        assert answer.headers["access-control-allow-origin"] == "https://shop.example"
        assert "internal" not in answer.text
        if status != 502:
            assert answer.headers["content-security-policy"].startswith("sandbox")
        if ask == "challenge":
            assert (answer.headers["content-type"], answer.headers["x-script-mine"]) == ("text/plain", "é")
        if ask == "moved":
            assert answer.headers["location"] == "https://shop.example/thanks"
    assert post(lodge, plain.path + "?as=text").status_code == 202
    first, again = (post(lodge, made.path + "?as=text", idempotency_key="one") for _ in range(2))
    assert (first.text, again.text) == ("<b>hello</b>", "<b>hello</b>"), "a repeated delivery has the same answer"

    large = post(lodge, made.path, "x" * 300_000, origin="https://shop.example")
    assert (large.status_code, large.headers["access-control-allow-origin"]) == (413, "https://shop.example")
    wish = {"access_control_request_method": "POST"}
    asked = post(lodge, made.path, method="OPTIONS", origin="https://shop.example", **wish)
    assert (asked.status_code, asked.headers["access-control-allow-methods"]) == (204, "GET, POST")
    other = post(lodge, made.path, method="OPTIONS", origin="https://evil.example", **wish)
    assert "access-control-allow-origin" not in other.headers
    for wrong in ("shop.example", "https://shop.example/path", "ftp://x", "https://a b"):
        with pytest.raises(InputError, match="origin"):
            engine.urls.create("acme", "x", "answering", origins=[wrong])


def test_a_sender_waits_no_longer_than_the_limit(lodge: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "ANSWER_S", 0.3)
    path = lodge.engine.urls.create("acme", "hook", "job", answers=True).path
    late = post(lodge, path)  # there is no node
    assert (late.status_code, late.json()["code"]) == (504, "url_answer_late")
    assert [each.state for each in lodge.engine.actions.list("acme")] == ["ready"]

"""Handles: the host puts the value into requests to allowed hosts; a script is never given it but by an extra grant."""

import asyncio
import base64
import json
from collections.abc import Iterator
from html import escape
from typing import Any
from urllib.parse import quote

import pytest
from tests.egress.peer import Asked, Peer, answer, redirect
from tests.unit.capabilities.requesting import VALUE, RequestBench, opened_bench

from lodger.engine.core.access.grants import parse
from lodger.engine.node.executors.attempt import Attempt


@pytest.fixture
def bench() -> Iterator[RequestBench]:
    with opened_bench(Peer(), Peer()) as made:
        yield made


def ask(attempt: Attempt, call: str, **arguments: Any) -> Any:
    reply = asyncio.run(attempt.call(call, json.dumps(arguments)))
    assert VALUE not in reply.json or call == "secrets.read"
    body = json.loads(reply.json)
    return body if reply.ok else body["code"]


def fetch_with(attempt: Attempt, url: str, authorization: str, **more: Any) -> Any:
    return ask(
        attempt,
        "http.fetch",
        id=len(attempt.fetch_state.shown),
        method="GET",
        url=url,
        headers=[["authorization", authorization]],
        **more,
    )


def test_the_value_is_put_in_where_the_request_leaves(bench: RequestBench) -> None:
    attempt = bench.attempt("secret:KEY")
    assert fetch_with(attempt, bench.peer.url(), "Bearer {{secret:KEY}}")["status"] == 200
    assert fetch_with(attempt, bench.peer.url(), "Basic {{basic:ann:KEY}}")["status"] == 200
    sent = [asked.headers["authorization"] for asked in bench.peer.asked]
    assert sent == [f"Bearer {VALUE}", "Basic " + base64.b64encode(f"ann:{VALUE}".encode()).decode()]
    assert VALUE not in json.dumps(attempt.effects())
    assert VALUE not in repr(attempt.fetch_state.fetched)


@pytest.mark.parametrize(
    ("grants", "header", "code"),
    [
        ((), "{{secret:KEY}}", "denied"),
        ((), "{{basic:x:KEY}}", "denied"),
        (("secret:OTHER",), "{{secret:KEY}}", "denied"),
        (("secret:OTHER",), "{{secret:OTHER}}", "secret_unknown"),
    ],
)
def test_only_what_was_granted_by_name(bench: RequestBench, grants: tuple[str, ...], header: str, code: str) -> None:
    assert fetch_with(bench.attempt(*grants), bench.peer.url(), header) == code
    assert bench.peer.connections == 0


def test_it_goes_to_its_own_hosts_only(bench: RequestBench) -> None:
    attempt = bench.attempt("secret:KEY")
    assert fetch_with(attempt, bench.peers[1].url(), "{{secret:KEY}}") == "fetch_refused"
    bench.hosts = [f"https://127.0.0.1:{bench.peer.port}"]
    assert fetch_with(bench.attempt("secret:KEY"), bench.peer.url(), "{{secret:KEY}}") == "fetch_refused", (
        "in clear it goes nowhere unless told"
    )
    bench.hosts = []
    assert fetch_with(bench.attempt("secret:KEY"), bench.peer.url(), "{{secret:KEY}}") == "fetch_refused"
    assert bench.peer.asked == bench.peers[1].asked == []


def test_a_refusal_names_the_secret_and_what_it_is_bound_to(bench: RequestBench) -> None:
    bench.hosts = ["https://api.example.com", "https://*.example.org"]
    arguments = {"id": 1, "method": "GET", "url": bench.peer.url(), "headers": [["authorization", "{{secret:KEY}}"]]}
    reply = asyncio.run(bench.attempt("secret:KEY").call("http.fetch", json.dumps(arguments)))
    message = json.loads(reply.json)["message"]
    assert message == (
        f"the secret KEY may be sent to api.example.com, *.example.org, not to http://127.0.0.1:{bench.peer.port}"
    )


def test_it_does_not_go_along_to_another_host(bench: RequestBench) -> None:
    bench.peer.paths["/"] = redirect(bench.peers[1].url())
    attempt = bench.attempt("secret:KEY")
    assert fetch_with(attempt, bench.peer.url(), "{{secret:KEY}}")["status"] == 200
    assert "authorization" not in bench.peers[1].asked[0].headers
    reported = ask(
        attempt, "http.fetch", id=9, method="GET", url=bench.peer.url(), headers=[["accept", "{{secret:KEY}}"]]
    )
    assert reported == "fetch_refused", "a header that may go along does not carry it"
    assert len(bench.peers[1].asked) == 1


ODD = 'k+y "1" &<ü>/='


@pytest.mark.parametrize(
    ("path", "kind", "body", "sent"),
    [
        ("/?key={{secret:KEY}}", "", "x", "/?key=k%2By%20%221%22%20%26%3C%C3%BC%3E%2F%3D"),
        ("/{{secret:KEY}}/a", "", "x", "/k%2By%20%221%22%20%26%3C%C3%BC%3E%2F%3D/a"),
        ("/?key=%7B%7Bsecret%3AKEY%7D%7D", "", "x", "/?key=k%2By%20%221%22%20%26%3C%C3%BC%3E%2F%3D"),
        ("/", "application/x-www-form-urlencoded;charset=UTF-8", "k=%7B%7Bsecret%3AKEY%7D%7D", f"k={quote(ODD, safe='')}"),
        ("/", "application/x-www-form-urlencoded", "k={{secret:KEY}}&z", f"k={quote(ODD, safe='')}&z"),
        ("/", "application/json", '{"k":"{{secret:KEY}}"}', json.dumps({"k": ODD}, ensure_ascii=False, separators=(",", ":"))),
        ("/", "", '{"k":"{{secret:KEY}}"}', json.dumps({"k": ODD}, ensure_ascii=False, separators=(",", ":"))),
        ("/", "text/xml", "<k>{{secret:KEY}}</k>", f"<k>{escape(ODD)}</k>"),
        ("/", "text/plain", "k: {{secret:KEY}}", f"k: {ODD}"),
        ("/", "", {"$bytes": base64.b64encode(b"\xff{{secret:KEY}}\xfe").decode()}, f"\xff{ODD}\xfe"),
        ("/", "", "{{basic:ann:KEY}}", base64.b64encode(f"ann:{ODD}".encode()).decode()),
    ],
)  # fmt: skip
def test_a_handle_is_replaced_in_urls_and_bodies_as_their_place_is_written(
    bench: RequestBench, path: str, kind: str, body: Any, sent: str
) -> None:
    bench.value = ODD
    headers = [["content-type", kind]] if kind else []
    arguments = {"id": 1, "method": "POST", "url": bench.peer.url(path), "headers": headers, "body": body}
    assert ask(bench.attempt("secret:KEY"), "http.fetch", **arguments)["url"] == bench.peer.url(path)
    asked = bench.peer.asked[0]
    expected = sent.encode("utf-8" if "\xff" not in sent else "latin-1")
    if "\xff" in sent:
        expected = b"\xff" + ODD.encode() + b"\xfe"
    assert (asked.line.split(" ")[1].encode() if sent.startswith("/") else asked.body) == expected
    assert int(asked.headers["content-length"]) == len(asked.body)


def test_a_handle_goes_nowhere_as_text(bench: RequestBench) -> None:
    """A body or URL is refused like a header, a body does not follow to another host, and base64 is told from text."""
    post = {"id": 1, "method": "POST", "headers": []}
    encoded = base64.b64encode(b"ann:{{secret:KEY}}").decode()
    attempt, bench.peer.paths["/away"] = (
        bench.attempt("secret:KEY", "mail:*", "events"),
        redirect(bench.peers[1].url(), 307),
    )
    for arguments, code in (
        ({"url": bench.peer.url("/?{{secret:NONE}}")}, "denied"),
        ({"url": bench.peers[1].url("/?{{secret:KEY}}")}, "fetch_refused"),
        ({"url": bench.peers[1].url(), "body": "{{secret:KEY}}"}, "fetch_refused"),
        ({"url": bench.peer.url("/away"), "body": "{{secret:KEY}}"}, "fetch_refused"),
        ({"url": bench.peer.url(), "headers": [["authorization", f"Basic {encoded}"]]}, "bad_request"),
        ({"url": bench.peer.url(), "body": encoded}, "bad_request"),
        ({"url": bench.peer.url(), "headers": [["{{secret:KEY}}", "x"]]}, "bad_header"),
    ):
        assert ask(attempt, "http.fetch", **post | arguments) == code
    assert ask(attempt, "mail.send", to=["a@b.example"], subject="s", text="{{secret:KEY}}") == "bad_request"
    assert ask(attempt, "events.emit", name="a.b", data={"k": "{{secret:KEY}}"}) == "bad_request"
    assert bench.peers[1].asked == []
    missing = bench.attempt("secret:NONE")
    assert ask(missing, "http.fetch", **post, url=bench.peer.url(), body="{{secret:NONE}}") == "secret_unknown"


async def repeats(asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
    """A host that tells what it was sent, as test services and error pages do."""
    value = asked.headers["authorization"]
    body = json.dumps(
        {"sent": value, "coded": base64.b64encode(value.encode()).decode(), "raw": asked.raw.decode("latin-1")}
    ).encode()
    writer.write(answer(body, f"200 {value}", f"X-Sent: {value}", f"X-{VALUE}: 1"))
    await writer.drain()


def test_a_host_that_repeats_it_tells_the_script_nothing(bench: RequestBench) -> None:
    bench.peer.paths["/"] = repeats
    reported = fetch_with(bench.attempt("secret:KEY"), bench.peer.url(), "Bearer {{secret:KEY}}")
    assert VALUE not in json.dumps(reported)
    assert VALUE.lower() not in json.dumps(reported).lower()
    assert base64.b64encode(VALUE.encode()).decode()[4:36] not in reported["text"]
    assert "[secret KEY]" in reported["text"]


def test_a_value_is_read_by_its_own_grant_alone_and_known_from_then_on(bench: RequestBench) -> None:
    for grants in ((), ("secret:KEY",), ("secret:OTHER:plain",)):
        assert ask(bench.attempt(*grants), "secrets.read", name="KEY") == "denied"
    attempt = bench.attempt("secret:KEY:plain")
    assert not attempt.redactor
    assert ask(attempt, "secrets.read", name="KEY") == VALUE
    assert attempt.redactor.text(f"x{VALUE}y") == "x[secret KEY]y"
    assert ask(bench.attempt("secret:OTHER:plain"), "secrets.read", name="OTHER") == "secret_unknown"
    assert fetch_with(bench.attempt("secret:KEY:plain"), bench.peer.url(), "{{secret:KEY}}")["status"] == 200


def test_without_secrets_there_are_none(bench: RequestBench) -> None:
    attempt = bench.shop.attempt(claim={"grants": parse(["secret:KEY:plain"])})
    assert ask(attempt, "secrets.read", name="KEY") == "secret_unknown"


def test_handles_do_not_grow_into_megabytes(bench: RequestBench) -> None:
    attempt = bench.attempt("secret:KEY")
    handles = "{{secret:KEY}}" * 300
    refused = ask(
        attempt, "http.fetch", id=1, method="GET", url=bench.peer.url(), headers=[["x-a", handles], ["x-b", handles]]
    )
    assert refused == "bad_header"
    assert bench.peer.asked == []
    assert (
        ask(attempt, "http.fetch", id=1, method="GET", url=bench.peer.url(), headers=[["x-a", handles]])["status"]
        == 200
    )
    assert bench.peer.asked[0].headers["x-a"] == VALUE * 300

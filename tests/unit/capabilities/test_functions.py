"""Functions of a platform: signed requests on the loopback and Python functions, whatever the platform answers and scripts give."""

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.egress.peer import Asked, Peer, answer, held_answer, redirect
from tests.unit.capabilities.requesting import ACTION, RequestBench, opened_bench

from lodger.engine.capabilities.functions import MAX_BODY
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.errors import Explained
from lodger.engine.core.functions import Endpoint, FunctionCall, FunctionRefused, declare
from lodger.engine.egress import signature
from lodger.engine.node.executors.attempt import Attempt

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
ID = {"id": {"type": "integer", "required": True}, "note": {"type": "text"}}


class FunctionBench(RequestBench):
    """Attempts that call functions; the settings allow no private address."""

    def declare(self, name: str, answered_by: Any = None, **options: Any) -> None:
        place = Endpoint(self.peer.url("/hooks"), SECRET)
        self.shop.datasets.put_function(declare(name, answered_by or place, **options))

    def attempt(self, *grants: str, **more: Any) -> Attempt:
        return super().attempt(*(grants or ("functions",)), **more)


@pytest.fixture
def peer() -> Peer:
    return Peer()


@pytest.fixture
def bench(peer: Peer) -> Iterator[FunctionBench]:
    with opened_bench(peer, of=FunctionBench, egress_networks="", egress_ports="443") as made:
        made.reach = []  # a function is called without a grant to fetch
        yield made


def call(attempt: Attempt, name: str, *args: Any) -> Any:
    """Return the result, or the code and message of the error."""
    reply = asyncio.run(attempt.call("functions.call", json.dumps({"name": name, "args": args})))
    body = json.loads(reply.json)
    return json.loads(body) if reply.ok else (body["code"], body["message"])


def test_a_call_is_a_signed_request(bench: FunctionBench, peer: Peer) -> None:
    """It says for which tenant and action, once per call and not per attempt; a private address is reached as declared."""
    bench.declare("crm.score", params=ID, returns={"type": "number"})
    peer.paths["/hooks/crm.score"] = answer(b" 0.5 ")
    assert call(bench.attempt("functions:crm.score"), "crm.score", 7, "ä") == 0.5
    assert call(bench.attempt(), "crm.score", 7, "ä") == 0.5
    first, again = peer.asked
    assert first.line == "POST /hooks/crm.score HTTP/1.1"
    body = json.loads(first.body)
    key = body["idempotency_key"]
    assert body == {
        "function": "crm.score", "tenant": "one", "action": ACTION, "script": "t", "schedule": "s1",
        "params": {"id": 7, "note": "ä"}, "idempotency_key": key, "trial": False,
    }  # fmt: skip
    assert signature.verify(SECRET, first.headers, first.body, SystemClock().now_us() / 1e6) == key
    assert first.headers["idempotency-key"] == key == json.loads(again.body)["idempotency_key"]
    twice = bench.attempt()
    assert (call(twice, "crm.score", 7), call(twice, "crm.score", 7)) == (0.5, 0.5)
    assert len({json.loads(each.body)["idempotency_key"] for each in peer.asked}) == 3, (
        "two equal calls of a run are two calls"
    )


#: What the platform answers, and what the script gets.
ANSWERS: list[tuple[Any, Any]] = [
    (answer(b"", "204 No Content"), None),
    (answer(b'{"$instant": "x", "__proto__": 1}'), {"$instant": "x", "__proto__": 1}),
    (answer(b"", "500 Oops"), ("function_failed", "crm.ask: the platform answered 500")),
    (answer(b"<html>", "404 Not Found"), ("function_failed", "crm.ask: the platform answered 404")),
    (answer(b'{"message": "no such order"}', "404 Not Found"), ("function_refused", "crm.ask: no such order")),
    (answer(json.dumps({"message": "x" * 9000}).encode(), "422 No"), ("function_refused", "crm.ask: " + "x" * 500)),
    (answer(b'{"message": "secret"}', "500 Oops"), ("function_failed", "crm.ask: the platform answered 500")),
    (answer(b"<html>"), ("function_failed", "crm.ask: the platform's answer is not JSON")),
    (answer(b"\xff\xfe"), ("function_failed", "crm.ask: the platform's answer is not JSON")),
    (answer(b'"\xff"'), ("function_failed", "crm.ask: the platform's answer is not JSON")),
    (answer(b"[" * 5000), ("function_failed", "crm.ask: the platform's answer is not JSON")),
    (answer(b"NaN"), ("function_failed", "crm.ask: the platform's answer is not JSON")),
    (answer(b'"' + b"x" * 2 * MAX_BODY + b'"'), ("function_failed", f"crm.ask: the platform's answer has more than {MAX_BODY} bytes")),
    (redirect("http://169.254.169.254/"), ("function_failed", "crm.ask: the platform answered 302")),
    (b"nonsense\r\n\r\n", ("function_failed", "crm.ask: the answer of the host is not HTTP")),
]  # fmt: skip


def test_whatever_the_platform_answers(bench: FunctionBench, peer: Peer) -> None:
    bench.declare("crm.ask")
    bench.declare("crm.slow", timeout_s=0.2)
    bench.declare("crm.typed", returns={"type": "integer", "min": 1})
    for raw, got in ANSWERS:
        peer.paths["/hooks/crm.ask"] = raw
        assert call(bench.attempt(), "crm.ask") == got, raw[:100]
    until = threading.Event()
    peer.paths["/hooks/crm.slow"] = held_answer(answer(b"1"), until)
    assert call(bench.attempt(), "crm.slow") == ("function_failed", "crm.slow: no complete answer came within 0.2 s")
    until.set()

    async def endless(_asked: Asked, _reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while True:
            writer.write(b"1" * 65536)
            await writer.drain()

    peer.paths["/hooks/crm.ask"] = endless
    assert call(bench.attempt(), "crm.ask")[0] == "function_failed"
    for raw in (b'"7"', b"0", b"1.5", b"null", b"[]"):
        peer.paths["/hooks/crm.typed"] = answer(raw)
        assert call(bench.attempt(), "crm.typed") == (
            (None)
            if raw == b"null"
            else ("function_failed", "crm.typed: the platform's answer is not the declared integer")
        )


def test_what_scripts_may_not(bench: FunctionBench, peer: Peer) -> None:
    """Nothing of these reaches the platform."""
    bench.declare("crm.score", params=ID)
    bench.shop.datasets.learn(["crm.far"])
    for attempt, name, args, code in [
        (bench.attempt("functions:crm.other"), "crm.score", [7], "denied"),
        (bench.attempt("fetch:*"), "crm.score", [7], "denied"),
        (bench.attempt(), "crm.none", [], "bad_request"),
        (bench.attempt(), "../admin", [], "bad_request"),
        (bench.attempt(), "crm.far", [], "set_elsewhere"),
        (bench.attempt(), "crm.score", [], "bad_request"),
        (bench.attempt(), "crm.score", ["7"], "bad_request"),
        (bench.attempt(), "crm.score", [7, "x", 1], "bad_request"),
        (bench.attempt(), "crm.score", [7, {"$odd": 1}], "bad_request"),
        (bench.attempt(), "crm.score", [7, "{{secret:key}}"], "bad_request"),
        (bench.attempt(budgets={"fetches": 0}), "crm.score", [7], "budget_exceeded"),
        (bench.attempt(offline=True, dry=True, claim={"trial": True, "fetches": True}), "crm.score", [7], "offline"),
    ]:
        assert call(attempt, name, *args)[0] == code, (name, args)
    reply = asyncio.run(bench.attempt("fetch:*").call("functions.call", json.dumps({"name": "crm.score", "args": [7]})))
    assert json.loads(reply.json)["message"].endswith("the grant functions:crm.score"), "not the grant of all functions"
    for hostile in ({"name": "crm.score", "args": {"length": 1}}, {"name": "crm.score", "args": [], "tenant": "two"}):
        reply = asyncio.run(bench.attempt().call("functions.call", json.dumps(hostile)))
        assert json.loads(reply.json)["code"] == "bad_request"
    # The URL of the platform is no way round the guard of fetch.
    reply = asyncio.run(
        bench.attempt("fetch:*", f"fetch:{peer.url('')}").call(
            "http.fetch", json.dumps({"id": 1, "method": "GET", "url": peer.url(), "headers": []})
        )
    )
    assert json.loads(reply.json)["code"] == "fetch_refused"
    assert peer.asked == []


def test_python_functions(bench: FunctionBench, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[FunctionCall] = []

    def score(given: FunctionCall) -> Any:
        calls.append(given)
        return {"id": given.params["id"], "tenant": given.tenant_id}

    async def later(given: FunctionCall) -> Any:
        await asyncio.sleep(0)
        return given.params

    def refuse(_given: FunctionCall) -> Any:
        raise FunctionRefused("the order is closed")

    def fail(_given: FunctionCall) -> Any:
        raise ValueError("password is geheim")

    def leave(_given: FunctionCall) -> Any:
        raise SystemExit(3)

    until = threading.Event()
    python: list[tuple[str, Callable[[FunctionCall], Any], Any]] = [
        ("score", score, {"id": 7, "tenant": "one"}),
        ("later", later, {"id": 7}),
        ("refuse", refuse, ("function_refused", "crm.refuse: the order is closed")),
        ("fail", fail, ("function_failed", "crm.fail: the platform's function raised an error")),
        ("leave", leave, ("function_failed", "crm.leave: the platform's function raised an error")),
        ("odd", lambda _given: object(), ("function_failed", "crm.odd: the platform's function raised an error")),
        ("huge", lambda _given: "x" * MAX_BODY, ("function_failed", f"crm.huge: its result has more than {MAX_BODY} bytes of JSON")),
        ("hang", lambda _given: until.wait(60), ("function_failed", "crm.hang: it did not return within 0.2 s")),
    ]  # fmt: skip
    for name, function, got in python:
        bench.declare(f"crm.{name}", function, params=ID, timeout_s=0.2 if name == "hang" else 10)
        assert call(bench.attempt(), f"crm.{name}", 7) == got, name
    until.set()
    assert "geheim" in caplog.text, "the operator reads what a function raised"
    assert [(each.action_id, each.trial, dict(each.params)) for each in calls] == [(ACTION, False, {"id": 7})]


def test_a_repeated_attempt_gets_the_answers_of_the_first(bench: FunctionBench, peer: Peer) -> None:
    """Not called a second time: neither a platform nor a Python function."""
    counted: list[int] = []
    bench.declare("crm.count", lambda _given: counted.append(1) or len(counted))
    bench.declare("crm.post")
    peer.paths["/hooks/crm.post"] = answer(b'"made"')
    first = bench.attempt()
    assert (call(first, "crm.count"), call(first, "crm.post")) == (1, "made")
    second = bench.attempt(kept={each.key: each.answer for each in first.fetch_state.fetched})
    assert (call(second, "crm.count"), call(second, "crm.post")) == (1, "made")
    assert (len(counted), len(peer.asked)) == (1, 1)


def test_trials_call_what_changes_nothing(bench: FunctionBench, peer: Peer) -> None:
    bench.declare("crm.read", trial=True)
    bench.declare("crm.write", params=ID)
    peer.paths["/hooks/crm.read"] = peer.paths["/hooks/crm.write"] = answer(b"1")
    dry = bench.attempt(claim={"trial": True}, dry=True)
    assert (call(dry, "crm.read"), call(dry, "crm.write", 7)) == (1, None)
    assert dry.fetch_state.shown == [
        {"effect": "function", "name": "crm.read", "params": {}, "sent": True, "status": 200},
        {"effect": "function", "name": "crm.write", "params": {"id": 7}, "sent": False},
    ]
    assert [json.loads(each.body)["trial"] for each in peer.asked] == [True]
    assert call(bench.attempt(claim={"trial": True, "fetches": True}), "crm.write", 7) == 1


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("score", {}, "function_invalid"), ("db.score", {}, "function_invalid"), ("Object.keys", {}, "function_invalid"),
        ("console.log", {}, "function_invalid"), ("new.thing", {}, "function_invalid"), ("crm.then", {}, "function_invalid"),
        ("crm.a.b", {}, "function_invalid"), ("crm." + "x" * 40, {}, "function_invalid"), ("crm.sc-ore", {}, "function_invalid"),
        ("crm.score", {"timeout_s": 0}, "function_invalid"), ("crm.score", {"timeout_s": True}, "function_invalid"),
        ("crm.score", {"params": {"id": {"type": "uuid"}}}, "fields_invalid"), ("crm.score", {"params": {"id": 1}}, "fields_invalid"),
        ("crm.score", {"returns": {"typ": "text"}}, "fields_invalid"), ("crm.score", {"answered_by": 3}, "function_invalid"),
    ],
)  # fmt: skip
def test_declarations_that_are_refused(name: str, options: dict[str, Any], code: str) -> None:
    with pytest.raises(Explained) as caught:
        declare(name, **{"answered_by": print} | options)
    assert caught.value.code == code

"""Pings: actions that are one HTTP request, by the way out of scripts, without a worker."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.egress.name_server import NameServer
from tests.egress.peer import Asked, Peer, answer, opened, redirect, thread_of_peers
from tests.node.harness import Script, Signals

from lodger.engine import Engine
from lodger.engine.core.errors import InputError
from lodger.engine.store.records import Action
from lodger.engine.sync import Engine as SyncEngine

#: JSON that Python reads where its stack is short, and nowhere else.
DEEP = "[" * 900 + "]" * 900


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    made.paths = {
        "/json": answer(b'{"up": true}'),
        "/text": answer(b"up"),
        "/bytes": answer(b"\xff\xfe"),
        "/long": answer(b"x" * 9000),
        "/down": answer(b"out of order", "503 Service Unavailable"),
        "/gone": answer(b"", "404 Not Found"),
        "/moved": redirect("/json"),
        "/away": redirect("http://127.0.0.1:1/"),
        "/nan": answer(b"NaN"),
        "/endless": answer(b"1e999"),
        "/half": answer(b'"\\ud800"'),
        "/twice": answer(b'{"a": 1, "a": 2}'),
        "/deep": answer(DEEP.encode()),
        "/torn": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf",
    }
    with thread_of_peers(made):
        yield made


@asynccontextmanager
async def pinging(folder: Path, peer: Peer, **more: Any) -> AsyncIterator[tuple[Engine, Signals, Script]]:
    settings = opened(peer, sqlite_synchronous="NORMAL", poll_s=0.05, drain_s=0.1, **more)
    async with Engine.open(str(folder / "l.db"), settings=settings) as engine:
        await engine.tenants.create("acme", grants=[f"fetch:http://127.0.0.1:{peer.port}", "secret:KEY"])
        signals, script = Signals(engine), Script()
        async with engine.node(script):
            yield engine, signals, script


async def run_once(engine: Engine, signals: Signals, name: str = "knock", params: Any = None) -> Action:
    """Request a run of a ping, and wait until it has ended."""
    action = await engine.run_in("acme", name, 0, params=params)

    async def over() -> bool:
        return (await engine.actions.get(None, action.id)).state in {"done", "failed", "cancelled"}

    await signals.until(over)
    return await engine.actions.get(None, action.id)


ANSWERED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("/json", "2xx", {"status": 200, "bytes": 12, "body": {"up": True}}),
    ("/text", "2xx", {"status": 200, "bytes": 2, "body": "up"}),
    ("/bytes", "2xx", {"status": 200, "bytes": 2}),
    ("/long", "2xx", {"status": 200, "bytes": 9000, "body": "x" * 4096}),
    ("/gone", "200, 404", {"status": 404, "bytes": 0}),
    ("/nan", "2xx", {"status": 200, "bytes": 3, "body": "NaN"}),
    ("/endless", "2xx", {"status": 200, "bytes": 5, "body": "1e999"}),
    ("/half", "2xx", {"status": 200, "bytes": 8, "body": '"\\ud800"'}),
    ("/twice", "2xx", {"status": 200, "bytes": 16, "body": '{"a": 1, "a": 2}'}),
    ("/deep", "2xx", {"status": 200, "bytes": len(DEEP), "body": DEEP}),
    ("/moved", "2xx", {"status": 200, "bytes": 12, "body": {"up": True}}),
)
REFUSED = (
    ("/down", "script_error", "answered 503 Service Unavailable; expected 2xx"),
    ("/gone", "script_error", "answered 404"),
    ("/torn", "script_error", "ended before the answer was complete"),
    ("/away", "denied", "it needs the grant fetch:http://"),
)
FORBIDDEN_HOSTS = ("10.0.0.1", "169.254.169.254", "[::1]", "localhost", "other.example")


async def test_what_was_answered_is_the_result_and_any_other_answer_fails_the_run(tmp_path: Path, peer: Peer) -> None:
    async with pinging(tmp_path, peer) as (engine, signals, script):
        for path, expect, result in ANSWERED:
            await engine.scripts.put_ping("acme", "knock", peer.url(path), expect=expect)
            done = await run_once(engine, signals)
            url = peer.url("/json" if path == "/moved" else path)
            assert (done.state, done.result) == ("done", result | {"url": url}), path
        for path, outcome, said in REFUSED:
            await engine.scripts.put_ping("acme", "knock", peer.url(path))
            failed = await run_once(engine, signals)
            assert (failed.state, failed.outcome) == ("failed", outcome), path
            assert failed.error is not None
            assert said in failed.error.message
            if path == "/down":
                assert [line.text for line in await engine.actions.logs(None, failed.id)] == ["out of order"]
        asked = len(peer.asked)
        for host in FORBIDDEN_HOSTS:
            await engine.scripts.put_ping("acme", "knock", f"http://{host}:{peer.port}/json")
            failed = await run_once(engine, signals)
            assert (failed.state, failed.outcome, len(peer.asked)) == ("failed", "denied", asked), host
        assert script.seen == [], "no worker has anything to do with it"


async def test_what_is_inside_and_what_does_not_exist_look_the_same(tmp_path: Path, peer: Peer) -> None:
    zone = {"internal.corp.example": [["10.9.8.7"]]}
    async with NameServer(zone) as names, pinging(tmp_path, peer, egress_dns=names.place) as (engine, signals, _):
        await engine.grants.give(
            "acme", f"fetch:http://*.corp.example:{peer.port}", f"fetch:http://10.9.8.7:{peer.port}"
        )
        found = set()
        for number, host in enumerate(("internal.corp.example", "absent.corp.example", "10.9.8.7")):
            await engine.scripts.put_ping("acme", f"knock{number}", f"http://{host}:{peer.port}/")
            failed = await run_once(engine, signals, f"knock{number}")
            assert failed.error is not None
            found.add((failed.outcome, failed.error.name, failed.error.message))
        assert len(found) == 1, found


async def test_it_is_tried_again_with_the_same_key_and_tells_what_it_is_about(tmp_path: Path, peer: Peer) -> None:
    answers = iter([answer(b"", "503 Service Unavailable"), answer(b"ok")])

    async def second(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
        writer.write(next(answers))
        await writer.drain()

    peer.paths["/hook"] = second

    async with pinging(tmp_path, peer) as (engine, signals, _script):
        await engine.scripts.put_ping("acme", "knock", peer.url("/hook"), method="post")
        made = await engine.schedules.create(
            "acme", "s", script="knock", rules="every 1h", params={"n": 1}, retry={"attempts": 2, "backoff_s": 0.05}
        )
        action = await engine.actions.run_now("acme", "s")

        async def over() -> bool:
            return (await engine.actions.get(None, action.id)).state == "done"

        await signals.until(over)
        assert [each.outcome for each in await engine.actions.attempts(None, action.id)] == ["script_error", "ok"]
        first, again = peer.asked
        assert first.headers["idempotency-key"] == again.headers["idempotency-key"]
        body = json.loads(first.body)
        assert body == json.loads(again.body)
        assert (body["tenant"], body["action"], body["schedule"], body["params"]) == (
            "acme", action.id, made.id, {"n": 1},
        )  # fmt: skip
        assert first.headers["content-type"] == "application/json"


async def test_headers_and_body_are_the_tenants_and_a_secret_goes_by_its_handle(tmp_path: Path, peer: Peer) -> None:
    async with pinging(tmp_path, peer, secret_keys=str(tmp_path / "keys")) as (engine, signals, _script):
        engine.inner.secrets.vault.keyring.add()
        await engine.secrets.put("acme", "KEY", "sk_live_0123456789", hosts=[f"http://127.0.0.1:{peer.port}"])
        headers = {"Authorization": "Bearer {{secret:KEY}}", "X-Own": "1"}
        made = await engine.scripts.put_ping(
            "acme", "knock", peer.url("/json"), method="PUT", headers=headers, body="<plain>"
        )
        assert "sk_live" not in json.dumps(made.modules)
        assert (await run_once(engine, signals)).state == "done"
        (asked,) = peer.asked
        assert (asked.headers["authorization"], asked.headers["x-own"]) == ("Bearer sk_live_0123456789", "1")
        assert asked.body == b"<plain>"


async def test_a_host_that_never_answers_ends_at_the_limit_and_a_cancelled_ping_at_once(
    tmp_path: Path, peer: Peer
) -> None:
    reached = threading.Event()

    async def never(_asked: Asked, reader: asyncio.StreamReader, _writer: object) -> None:
        reached.set()
        await reader.read()

    peer.paths["/never"] = never

    async with pinging(tmp_path, peer) as (engine, signals, _script):
        await engine.tenants.edit("acme", limits={"wall_ms": 300})
        await engine.scripts.put_ping("acme", "knock", peer.url("/never"))
        late = await run_once(engine, signals)
        assert (late.state, late.outcome) == ("failed", "wall_limit")
        await engine.tenants.edit("acme", limits={})
        reached.clear()
        action = await engine.run_in("acme", "knock", 0)
        assert await asyncio.to_thread(reached.wait, 20)
        await engine.actions.cancel(None, action.id)

        async def free() -> bool:
            return peer.open == 0

        await signals.until(free)
        assert (await engine.actions.get(None, action.id)).state == "cancelled"


async def test_the_budget_of_an_attempt_and_of_the_day_bind_it(tmp_path: Path, peer: Peer) -> None:
    async with pinging(tmp_path, peer) as (engine, signals, _script):
        await engine.tenants.edit("acme", limits={"fetches_per_day": 1})
        await engine.scripts.put_ping("acme", "knock", peer.url("/json"))
        assert (await run_once(engine, signals)).state == "done"
        refused = await run_once(engine, signals)
        assert refused.state == "failed"
        assert len(peer.asked) == 1


UNASKABLE: tuple[dict[str, Any], ...] = (
    {"url": "ftp://example.com/"},
    {"url": "https://user:pw@example.com/"},
    {"url": "https://EXAMPLE.com/"},
    {"url": "https://example.com/\r\nx"},
    {"url": "example.com"},
    {"url": ""},
    {"url": "https://example.com/" + "x" * 9000},
    {"method": "TRACE"},
    {"method": "GET\r\nX: y"},
    {"method": "GET", "body": "x"},
    {"headers": {"host": "other"}},
    {"headers": {"x": "a\r\nb: c"}},
    {"headers": {"x": 1}},
    {"expect": ""},
    {"expect": "ok"},
    {"expect": "9xx"},
    {"method": "POST", "body": float("nan")},
    {"method": "POST", "body": "a\0b"},
    {"method": "POST", "body": "\ud800"},
)


def test_what_cannot_be_asked_is_refused_when_it_is_stored(tmp_path: Path) -> None:
    with SyncEngine.open(str(tmp_path / "l.db")) as engine:
        engine.tenants.create("acme")
        for given in UNASKABLE:
            with pytest.raises(InputError) as refused:
                engine.scripts.put_ping("acme", "knock", **({"url": "https://example.com/"} | given))
            assert refused.value.code == "ping_invalid", given
        assert engine.scripts.list("acme") == []


def test_it_is_a_script_like_others(tmp_path: Path) -> None:
    """Versions, rollback, a kind that stays, and a size that the tenant's limit bounds."""
    with SyncEngine.open(str(tmp_path / "l.db")) as engine:
        engine.tenants.create("acme", limits={"source_bytes": 2000})
        one = engine.scripts.put_ping("acme", "knock", "https://example.com/1")
        assert engine.scripts.put_ping("acme", "knock", "https://example.com/1").version == 1
        two = engine.scripts.put_ping("acme", "knock", "https://example.com/2", why="moved")
        assert (one.kind, two.version, two.why) == ("ping", 2, "moved")
        back = engine.scripts.rollback("acme", "knock", 1)
        assert (back.version, back.digest, back.kind) == (3, one.digest, "ping")
        with pytest.raises(InputError) as fixed:
            engine.scripts.put("acme", "knock", "export default 1")
        assert fixed.value.code == "kind_fixed"
        engine.scripts.put("acme", "job", "export default 1")
        with pytest.raises(InputError) as fixed:
            engine.scripts.put_ping("acme", "job", "https://example.com/")
        assert fixed.value.code == "kind_fixed"
        with pytest.raises(InputError) as refused:
            engine.scripts.put_ping("acme", "big", "https://example.com/", method="POST", body=os.urandom(2000).hex())
        assert refused.value.code == "source_too_large"

"""``fetch`` as scripts meet it: real walls, real requests on the loopback, both runtimes."""

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.echo_server import echo
from tests.e2e.script_runs import claim
from tests.egress.peer import Asked, Peer, answer, opened, redirect, thread_of_peers
from tests.unit.data.shop import Frozen, Shop

from lodger.engine.core.access.grants import parse
from lodger.engine.effects.finished import Finished
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    with thread_of_peers(made):
        yield made


def run(peer: Peer, source: str, *, runtime: str = "quickjs", grants: tuple[str, ...] = (), **more: Any) -> Finished:
    """Run one script; ``@@`` in it is where the peer is."""
    shop = Shop()
    granted = parse(grants or (f"fetch:http://127.0.0.1:{peer.port}",))

    async def go() -> Finished:
        pool = Pool(runtime=runtime, size=1, cores=1, profile="trusted")
        executor = SandboxExecutor(pool, HostSide(shop.read, shop.datasets, Frozen(), way_out=WayOut(opened(peer))))
        await executor.start()
        try:
            return await executor.execute(
                claim(source.replace("@@", f"http://127.0.0.1:{peer.port}"), grants=granted, **more)
            )
        finally:
            await executor.stop()

    try:
        return asyncio.run(go())
    finally:
        shop.close()


def result(ended: Finished) -> Any:
    assert ended.outcome is Outcome.OK, ended.error
    return json.loads(ended.result or "null")


EVERYTHING = """
export default async ({ fetch: mine }) => {
  const out = {};
  const got = await fetch("@@/echo?a=1#gone", { method: "post", headers: { "X-Mine": " é " }, body: new URLSearchParams({ q: "ä b" }) });
  out.meta = [got.status, got.ok, got.statusText, got.url.slice(-9), got.redirected, got.type, got.headers.get("x-two"), got.bodyUsed];
  out.echo = await got.json();
  out.used = [got.bodyUsed, await got.text().catch((e) => e.name)];
  const bytes = await mine(new Request("@@/bytes"));
  const two = bytes.clone();
  out.bytes = [[...await bytes.bytes()], (await two.arrayBuffer()).byteLength];
  out.head = [(await fetch("@@/echo", { method: "HEAD" })).status, await (await fetch("@@/empty")).text()];
  out.binary = (await (await fetch("@@/echo", { method: "PUT", body: new Uint8Array([0, 255, 10]) })).json()).body;
  out.moved = await fetch("@@/moved").then((r) => [r.redirected, r.url.endsWith("/empty")]);
  out.manual = (await fetch("@@/moved", { redirect: "manual" })).headers.get("location");
  out.failed = await fetch("@@/moved", { redirect: "error" }).catch((e) => e.code);
  out.large = (await (await fetch("@@/large")).text()).length;
  out.status = (await fetch("@@/broken")).status;
  const controller = new AbortController();
  const waiting = fetch("@@/never", { signal: controller.signal });
  setTimeout(() => controller.abort(), 10);
  out.aborted = await waiting.catch((e) => e.name);
  out.before = await fetch("@@/never", { signal: AbortSignal.abort() }).catch((e) => e.name);
  const all = await Promise.all([1, 2, 3, 4].map((n) => fetch("@@/echo?" + n).then((r) => r.json())));
  out.all = all.map((one) => one.line);
  return out;
}
"""


@pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"])
def test_requests_of_every_shape(peer: Peer, runtime: str) -> None:
    async def never(_asked: Asked, reader: asyncio.StreamReader, _writer: object) -> None:
        await reader.read()

    peer.paths |= {
        "/echo": echo, "/bytes": answer(bytes([0, 255, 128])), "/empty": answer(b""), "/moved": redirect("/empty"), "/never": never,
        "/large": answer(("ä" * 700_000).encode()), "/broken": answer(b"", "503 Busy"),
    }  # fmt: skip
    out = result(run(peer, EVERYTHING, runtime=runtime))
    assert out["meta"] == [200, True, "OK", "/echo?a=1", False, "basic", "a, b", False]
    assert out["echo"]["line"] == "POST /echo?a=1 HTTP/1.1"
    assert out["echo"]["body"] == "q=%C3%A4+b"
    assert out["echo"]["headers"]["x-mine"] == "é"
    assert out["echo"]["headers"]["content-type"] == "application/x-www-form-urlencoded;charset=UTF-8"
    assert out["used"] == [True, "TypeError"]
    assert out["bytes"] == [[0, 255, 128], 3]
    assert out["head"] == [200, ""]
    assert out["binary"] == "\x00\xff\n"
    assert (out["moved"], out["manual"], out["failed"]) == ([True, True], "/empty", "fetch_failed")
    assert (out["large"], out["status"]) == (700_000, 503)
    assert (out["aborted"], out["before"]) == ("AbortError", "AbortError")
    assert out["all"] == [f"GET /echo?{number} HTTP/1.1" for number in (1, 2, 3, 4)]


def test_an_answer_and_a_request_are_readable_in_a_log_line(peer: Peer) -> None:
    ended = run(peer, "console.log(new Response('', { status: 404 })); console.log(new Request('@@/'))", grants=("kv",))
    response, request = (line.text for line in ended.logs)
    assert "status: 404" in response
    assert "ok: false" in response
    assert "method: 'GET'" in request
    assert "headers: Headers {}" in request


def test_what_was_not_granted_ends_as_denied_with_the_line(peer: Peer) -> None:
    ended = run(peer, "export default async () => {\n  await fetch('@@/');\n};", grants=("kv",))
    assert ended.outcome is Outcome.DENIED
    assert ended.error is not None
    assert (ended.error.line, ended.error.message) == (2, "this run does not have the grant fetch:HOST")
    ended = run(peer, "await fetch('@@/')", grants=("fetch:api.example.com",))
    assert ended.outcome is Outcome.DENIED
    assert peer.connections == 0


AS_OTHERS_DO = """
export default async () => {
  const given = { cache: "no-store", credentials: "include", mode: "cors", keepalive: true, priority: "high" };
  const request = new Request("@@/large", given);
  const answer = await fetch(request.clone());
  let bytes = 0, pieces = 0;
  for await (const piece of answer.body) { bytes += piece.length; pieces++; }
  const wrong = [{ cache: "only-if-cached" }, { mode: "navigate" }, { credentials: "all" }, { integrity: "sha256-x" }];
  const stream = new TextDecoder("big5"), text = new Uint8Array([0xa4, 0xa4, 0xa4, 0xe5]);
  const handle = new TextEncoder().encode("{{secret:K}}");
  const caught = (f) => { try { f(); return null } catch (error) { return error.name } };
  return {
    bytes, many: pieces > 10, request: [request.cache, request.credentials, request.mode, request.keepalive],
    plain: [new Request("@@/").cache, new Request("@@/").credentials, new Request("@@/").keepalive],
    none: [(await fetch("@@/none")).body, (await fetch("@@/large", { method: "HEAD" })).body, (await fetch("@@/not-modified")).body],
    empty: await (await fetch("@@/none")).text(), wrong: wrong.map((each) => caught(() => new Request("@@/", each))),
    kana: new TextDecoder("shift-jis").decode(await (await fetch("@@/sjis")).bytes()), label: new TextDecoder("sjis").encoding,
    stream: stream.decode(text.subarray(0, 1), { stream: true }) + stream.decode(text.subarray(1)),
    decoders: [caught(() => new TextDecoder("nope")), caught(() => new TextDecoder("euc-kr", { fatal: true }).decode(text.subarray(0, 1)))],
    key: await crypto.subtle.importKey("raw", handle, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]).catch((e) => e.name),
  };
}
"""


def test_options_of_browsers_bodies_in_pieces_and_older_encodings(peer: Peer) -> None:
    """A body larger than the memory of its script is read piece by piece."""
    peer.paths |= {
        "/large": answer(b"x" * (40 << 20)), "/none": b"HTTP/1.1 204 No Content\r\n\r\n", "/sjis": answer("日本語①".encode("cp932")),
        "/not-modified": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    }  # fmt: skip
    grants = (f"fetch:http://127.0.0.1:{peer.port},60s,48MiB",)
    limits = Limits(memory_bytes=32 << 20, cpu_ms=20_000)
    out = result(run(peer, AS_OTHERS_DO, grants=grants, limits=limits))
    assert out == {
        "bytes": 40 << 20, "many": True, "request": ["no-store", "include", "cors", True], "plain": ["default", "same-origin", False],
        "none": [None, None, None], "empty": "", "wrong": ["TypeError"] * 4, "kana": "日本語①", "label": "shift_jis", "stream": "中文",
        "decoders": ["RangeError", "TypeError"], "key": "TypeError",
    }  # fmt: skip


LIMITS_OF_A_GRANT = """
export default async () => {
  const said = (e) => e.code + ": " + e.message;
  return [await fetch("@@/large").then((r) => r.text(), said), await fetch("@@/never").catch(said)];
}
"""


def test_the_limits_of_the_grant_are_in_the_message(peer: Peer) -> None:
    async def never(_asked: Asked, reader: asyncio.StreamReader, _writer: object) -> None:
        await reader.read()

    peer.paths |= {"/large": answer(bytes((1 << 20) + 1)), "/never": never}
    large, late = result(run(peer, LIMITS_OF_A_GRANT, grants=(f"fetch:http://127.0.0.1:{peer.port},1s,1MiB",)))
    assert large.startswith("response_too_large: ")
    assert "more than 1048576 bytes" in large
    assert late.startswith("fetch_timeout: no complete answer came within 1 s")


CAUSES = """
export default async () => {
  const said = (error) => error.name + " " + error.cause?.code + ": " + error.message;
  const paths = ["/loop", "/nowhere", "/ftp", "/other", "/lzma", "/corrupt", "/short", "/half", "/nothing", "/telnet"];
  const asked = paths.map((path) => ["@@" + path]);
  for (const url of ["ftp://127.0.0.1/", "data:text/plain,x", "https://api.example/x", "http://10.0.0.1/"]) asked.push([url]);
  asked.push(["@@/loop", { redirect: "error" }]);
  const found = {};
  for (const [url, init] of asked) found[init ? "error" : url.replace("@@", "")] = await fetch(url, init).then((r) => r.status, said);
  return found;
};
"""


def test_each_cause_has_its_message(peer: Peer) -> None:
    packed, coded = gzip.compress(b"hello"), "Content-Encoding: gzip"
    peer.paths |= {
        "/loop": redirect("/loop"), "/nowhere": redirect("http://"), "/ftp": redirect("ftp://127.0.0.1/"), "/other": redirect("http://other.example/"),
        "/lzma": answer(b"x", "200 OK", "Content-Encoding: lzma"), "/short": answer(packed[:-4], "200 OK", coded),
        "/corrupt": answer(packed[:9] + b"x" * 20, "200 OK", coded), "/nothing": b"", "/telnet": b"login:\r\n\r\n",
        "/half": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf",
    }  # fmt: skip
    grants = (f"fetch:http://127.0.0.1:{peer.port}", "fetch:http://10.0.0.1")
    failed, refused = "TypeError fetch_failed: ", "TypeError fetch_refused: this request is not allowed: "
    assert result(run(peer, CAUSES, grants=grants, budgets={"fetches": 50})) == {
        "/loop": failed + "the answer is a redirect for the 6th time, and at most 5 are followed",
        "/nowhere": failed + "the redirect has no valid http or https URL in its location",
        "/ftp": refused + "fetch has the schemes http and https, not ftp",
        "/other": refused + "it needs the grant fetch:http://other.example",
        "/lzma": failed + "the answer has the content-encoding 'lzma'; gzip, br, zstd are decoded",
        "/corrupt": failed + "the body of the answer does not match its content-encoding",
        "/short": failed + "the compressed body of the answer is incomplete",
        "/half": failed + "the connection ended before the answer was complete",
        "/nothing": failed + "the host closed the connection without an answer",
        "/telnet": failed + "the answer of the host is not HTTP",
        "error": failed + 'the answer is a redirect, and redirect is "error"',
        "ftp://127.0.0.1/": refused + "fetch has the schemes http and https, not ftp",
        "data:text/plain,x": refused + "fetch has the schemes http and https, not data",
        "https://api.example/x": refused + "it needs the grant fetch:api.example",
        "http://10.0.0.1/": refused + "the host's name does not resolve, or its address or port is not public; "
        "check its spelling, or ask the operator, whose log says which",
    }

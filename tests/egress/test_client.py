"""One request against servers that answer well, badly, slowly, endlessly: real sockets, real TLS."""

import asyncio
import gzip
import threading
import time
from collections.abc import Iterator

import pytest
from tests.egress.name_server import NameServer
from tests.egress.peer import Asked, Peer, answer, opened, redirect, thread_of_peers, way_out

from lodger.engine.core.access.origins import Origin
from lodger.engine.egress.headers import Headers
from lodger.engine.egress.request import Redirect, Request
from lodger.engine.egress.request_errors import Cut, NoAnswer, Refused, TooLarge, TooLate
from lodger.engine.egress.target import Target
from lodger.engine.egress.way_out import WayOut


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    with thread_of_peers(made):
        yield made


@pytest.fixture
def pair() -> Iterator[tuple[Peer, Peer]]:
    """Two origins."""
    one, two = Peer(), Peer()
    with thread_of_peers(one, two):
        yield one, two


def test_a_request_arrives_as_it_was_said_and_its_answer_comes_whole(peer: Peer) -> None:
    peer.paths["/x"] = answer(b"b" * 100_000, "201 Made", "X-One: 1", "X-One: 2", "Set-Cookie: a=b")
    with way_out(peer) as send:
        got = send(peer.url("/x?q=1"), "POST", body=b"abc", headers=(("content-type", "text/plain"), ("x-mine", "é")))
    assert (got.status, got.reason, len(got.body), got.redirected) == (201, "Made", 100_000, False)
    assert [value for name, value in got.headers if name == "x-one"] == ["1", "2"]
    (asked,) = peer.asked
    assert asked.line == "POST /x?q=1 HTTP/1.1"
    assert asked.body == b"abc"
    assert asked.headers == {
        "host": f"127.0.0.1:{peer.port}", "content-type": "text/plain", "x-mine": "é", "accept-encoding": "gzip, br, zstd",
        "accept": "*/*",
        "user-agent": "Lodger", "content-length": "3", "connection": "close",
    }  # fmt: skip
    assert got.sent_bytes == len(asked.raw) + 4 + 3
    assert got.received_bytes > 100_000


def test_nothing_of_one_request_is_in_the_next(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cookie, no connection, no credential of the environment."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    peer.paths["/login"] = answer(b"", "200 OK", "Set-Cookie: session=one; Path=/", "Connection: keep-alive")
    with way_out(peer) as send:
        send(peer.url("/login"), headers=(("authorization", "Bearer one"),), payer="one")
        send(peer.url("/"), payer="two")
        send(peer.url("/"), payer="one")
    assert peer.connections == 3
    assert all(not {"cookie", "authorization"} & set(asked.headers) for asked in peer.asked[1:])


def test_redirects_are_followed_five_times(peer: Peer) -> None:
    peer.paths |= {f"/{number}": redirect(f"/{number + 1}") for number in range(6)}
    with way_out(peer) as send:
        got = send(peer.url("/1"))
        assert (got.url, got.redirected, got.body) == (peer.url("/6"), True, b"hello")
        with pytest.raises(Cut, match="at most 5 are followed"):
            send(peer.url("/0"))
        manual = send(peer.url("/1"), redirect=Redirect.MANUAL)
        assert (manual.status, dict(manual.headers)["location"]) == (302, "/2")
        with pytest.raises(Cut):
            send(peer.url("/1"), redirect=Redirect.ERROR)


@pytest.mark.parametrize(
    ("status", "method", "becomes"),
    [(301, "POST", "GET"), (302, "POST", "GET"), (303, "PUT", "GET"), (303, "HEAD", "HEAD"), (307, "POST", "POST"), (308, "PUT", "PUT"),
     (302, "PUT", "PUT"), (301, "GET", "GET")],
)  # fmt: skip
def test_the_method_after_a_redirect(peer: Peer, status: int, method: str, becomes: str) -> None:
    peer.paths["/a"] = redirect("/b", f"{status} Moved")
    with way_out(peer) as send:
        send(
            peer.url("/a"),
            method,
            body=b"" if method in ("GET", "HEAD") else b"body",
            headers=(("content-type", "text/plain"),),
        )
    asked = peer.asked[1]
    kept = becomes == method and method not in ("GET", "HEAD")
    assert (asked.line.split()[0], asked.body) == (becomes, b"body" if kept else b"")
    assert ("content-type" in asked.headers) is (kept or becomes == method)


def test_credentials_do_not_go_along_to_another_origin(pair: tuple[Peer, Peer]) -> None:
    one, two = pair
    one.paths |= {"/same": redirect("/there"), "/other": redirect(two.url("/there"), "307 Go")}
    headers = (
        ("authorization", "Bearer x"),
        ("cookie", "a=b"),
        ("x-api-key", "k"),
        ("idempotency-key", "i"),
        ("accept", "text/plain"),
    )
    with way_out(one, two) as send:
        send(one.url("/same"), headers=headers)
        send(one.url("/other"), headers=headers)
    assert dict(headers).items() <= one.asked[1].headers.items()
    assert set(two.asked[0].headers) == {"host", "accept", "accept-encoding", "user-agent", "connection"}


def test_each_hop_is_allowed_anew_and_its_headers_are_filled_for_it(pair: tuple[Peer, Peer]) -> None:
    one, two = pair
    one.paths["/other"] = redirect(two.url("/"))
    filled: list[Origin] = []

    def fill(target: Target, headers: Headers, body: bytes) -> tuple[Target, Headers, bytes]:
        filled.append(target.origin)
        return target, headers, body

    with way_out(one, two) as send:
        with pytest.raises(Refused):
            send(one.url("/other"), allowed=lambda origin: origin.port == one.port, filled=fill)
        assert two.connections == 0
        send(one.url("/other"), filled=fill)
    assert [origin.port for origin in filled] == [one.port, one.port, two.port]


async def endless(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")
        await writer.drain()


async def endless_headers(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X: " + b"y" * 1000 + b"\r\n")
        await writer.drain()


async def continuing(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()


async def extended(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1;" + b"e" * 8000 + b"\r\nx\r\n")
        await writer.drain()


async def drips(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def drips_headers(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
    for letter in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 1000:
        writer.write(bytes([letter]))
        await writer.drain()
        await asyncio.sleep(0.05)


async def silent(_asked: Asked, reader: asyncio.StreamReader, _writer: object) -> None:
    await reader.read()


async def points_on_for_ever(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 302 Found\r\nLocation: /next\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")
        await writer.drain()


def test_what_stands_beside_a_redirect_is_not_read(peer: Peer) -> None:
    peer.paths["/"] = points_on_for_ever
    peer.paths["/next"] = answer(b"there")
    with way_out(peer) as send:
        assert send(peer.url()).body == b"there"
        with pytest.raises(TooLarge):
            send(peer.url(), redirect=Redirect.MANUAL)


BAD: dict[str, tuple[object, type[NoAnswer]]] = {
    "an endless body": (endless, TooLarge),
    "endless headers": (endless_headers, NoAnswer),
    "informed for ever": (continuing, TooLarge),
    "more around the pieces than in them": (extended, TooLarge),
    "a byte at a time": (drips, TooLate),
    "a letter of its headers at a time": (drips_headers, TooLate),
    "no word": (silent, TooLate),
    "a promise of more": (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", Cut),
    "a promise of too much": (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", Cut),
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", Cut),
    "a length below nothing": (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Cut),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", Cut),
    "nothing": (b"", Cut),
    "half a chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc", Cut),
    "a chunk of a size that is none": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc", Cut),
    "another protocol": (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", Cut),
    "a bomb": (answer(gzip.compress(bytes(20_000_000)), "200 OK", "Content-Encoding: gzip"), TooLarge),
    "an encoding nobody asked for": (answer(b"x", "200 OK", "Content-Encoding: br"), Cut),
    "two encodings": (answer(gzip.compress(gzip.compress(b"x")), "200 OK", "Content-Encoding: gzip, gzip"), Cut),
    "many headers": (answer(b"", "200 OK", *(f"X-{number}: {'y' * 700}" for number in range(100))), TooLarge),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_answers_end_in_time_and_in_bounds(peer: Peer, name: str) -> None:
    reported, error = BAD[name]
    peer.paths["/"] = reported  # type: ignore[assignment]  # bytes or a handler
    began = time.monotonic()
    with way_out(peer) as send, pytest.raises(error):
        send(peer.url(), total_s=1.0 if error is TooLate else 50.0)
    assert time.monotonic() - began < 60


def test_a_whole_answer_is_not_waited_for_any_longer(peer: Peer) -> None:
    async def stays(_asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"done"))
        await reader.read()

    peer.paths["/"] = stays
    began = time.monotonic()
    with way_out(peer) as send:
        assert send(peer.url()).body == b"done"
    assert time.monotonic() - began < 60


def test_names_are_asked_of_the_servers_given_and_a_silent_one_holds_nobody() -> None:
    peer, names = Peer(), NameServer({"api.example": [["127.0.0.1"]], "half.example": [["127.0.0.1", "127.0.0.9"]]})
    names.silent.add("slow.example")
    with thread_of_peers(peer, names=names), way_out(peer, egress_dns=names.place) as send:
        assert send(peer.url("/", "api.example")).status == 200
        assert peer.asked[0].headers["host"] == f"api.example:{peer.port}"
        for name in ("half.example", "absent.example", "slow.example"):
            with pytest.raises(NoAnswer) as refused:
                send(peer.url("/", name), total_s=1.0)
            assert isinstance(refused.value, TooLate if name == "slow.example" else Refused)
    assert peer.connections == 1


@pytest.mark.parametrize("end", ["the wait is cancelled", "the way out stops"])
async def test_a_request_that_is_under_way_is_broken_off(peer: Peer, end: str) -> None:
    came, gone = threading.Event(), threading.Event()

    async def waits(_asked: Asked, reader: asyncio.StreamReader, _writer: object) -> None:
        came.set()
        await reader.read()
        gone.set()

    peer.paths["/"] = waits
    way = WayOut(opened(peer))

    try:
        sending = asyncio.create_task(way.send(Request("GET", peer.url())))
        await asyncio.to_thread(came.wait, 60)
        if end == "the way out stops":
            await asyncio.to_thread(way.stop)
        else:
            sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(sending, 60)
        assert await asyncio.to_thread(gone.wait, 5)
    finally:
        way.stop()


async def test_the_pace_at_a_host_is_kept(peer: Peer) -> None:
    """Two seconds' worth go at once, then so many a second: counted against the time it took, however long that was."""
    began = time.monotonic()
    way = WayOut(opened(peer, egress_per_s=10))

    try:
        await asyncio.gather(*(way.send(Request("GET", peer.url(), payer="one", total_s=60)) for _ in range(20)))
        more = [way.send(Request("GET", peer.url(), payer="one", total_s=0.8)) for _ in range(400)]
        ended = await asyncio.gather(*more, return_exceptions=True)
    finally:
        way.stop()
    maximum = 21 + 10 * (time.monotonic() - began)
    late = [each for each in ended if isinstance(each, TooLate)]
    assert 20 <= len(peer.asked) <= maximum
    assert len(late) >= 420 - maximum
    assert late, "at its pace they would have taken 40 s"

"""Hostile connections to the bare server: ambiguous headers, slow bodies, bodies without end, many connections.

Each gets a clear 4xx or its connection cut, within bounded memory, while another client is served. Slow headers and slow readers are
the reverse proxy's task: ``tests/deploy/test_reverse_proxy.py``.
"""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.api.running_api import RunningApi, body_of, read_to_end, running_api

from lodger.engine.server import bodies
from lodger.escape.invariants import resident_bytes

HEAD = b"Host: a\r\nConnection: close\r\n"


def request_head(lodge: RunningApi, method: str, path: str, *headers: str) -> bytes:
    """Return the head of an HTTP request with an administrator's token."""
    lines = [f"{method} /api/v1{path} HTTP/1.1", "Host: a", f"Authorization: Bearer {lodge.token('admin')}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def answer_time_s(lodge: RunningApi) -> float:
    """Send a request as another client; return how long its answer took, in seconds."""
    begun = time.perf_counter()
    assert lodge.ask("GET", "/me", role="viewer", tenant="acme").status_code == 200
    return time.perf_counter() - begun


SMUGGLED = {
    "two lengths": b"Content-Length: 2\r\nContent-Length: 30\r\n\r\n{}",
    "a length that is a list": b"Content-Length: 2, 30\r\n\r\n{}",
    "a length and chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in other words": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks not last": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a length below nothing": b"Content-Length: -1\r\n\r\n",
    "a length with a sign": b"Content-Length: +2\r\n\r\n{}",
    "a length in hexadecimal": b"Content-Length: 0x2\r\n\r\n{}",
    "a length of forty digits": b"Content-Length: " + b"9" * 40 + b"\r\n\r\n",
    "a space before the colon": b"Content-Length : 2\r\n\r\n{}",
    "a name that is none": b"Content Length: 2\r\n\r\n{}",
    "a NUL": b"X-One: a\0b\r\n\r\n",
    "a lone CR": b"X-One: a\rContent-Length: 30\r\n\r\n",
    "a chunk's size that is none": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "a chunk's size without end": b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 30 + b"\r\n",
    "no colon": b"X-One\r\n\r\n",
}


@pytest.mark.parametrize("how", SMUGGLED)
def test_what_two_readers_would_read_differently_is_refused(steady: RunningApi, how: str) -> None:
    """One request, one answer: what stands behind it on the connection is never taken for another request."""
    lodge = steady
    hidden = b"GET /healthz HTTP/1.1\r\nHost: hidden\r\nX-Request-Id: smuggled\r\n\r\n"
    begin = (
        b"POST /api/v1/tenants/acme/suspend HTTP/1.1\r\n"
        b"Authorization: Bearer " + lodge.token("admin").encode() + b"\r\nContent-Type: application/json\r\n"
    )
    answer = lodge.raw(begin + b"Host: a\r\n" + SMUGGLED[how] + hidden)
    assert answer.startswith(b"HTTP/1.1 4"), answer[:200]
    assert b"smuggled" not in answer
    assert len(re.findall(rb"HTTP/1\.1 \d\d\d", answer)) == 1
    assert lodge.engine.tenants.get("acme").state == "active"


@pytest.mark.parametrize("token", [False, True], ids=["a stranger", "somebody known"])
def test_a_body_that_is_none_is_answered_once_and_not_written_down(
    steady: RunningApi, token: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It comes with its headers: the request is begun when its body turns out to be none."""
    shown = b"Authorization: Bearer " + steady.token("admin").encode() + b"\r\n" if token else b""
    begin = b"POST /api/v1/tenants HTTP/1.1\r\nContent-Type: application/json\r\n" + shown
    answer = steady.raw(begin + HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n")
    assert len(re.findall(rb"HTTP/1\.1 \d\d\d", answer)) == 1
    assert answer.startswith(b"HTTP/1.1 400"), answer[:200]
    assert answer_time_s(steady) < 30
    assert [record.getMessage() for record in caplog.records if record.name.startswith("lodger.api")] == []


@pytest.mark.parametrize(
    "line", [b"GET /api/v1/me HTTP/0.9", b"GET /api/v1/me HTTP/3.0", b"GET  /api/v1/me HTTP/1.1", b"G\xc3\x89T / HTTP/1.1",
             b"PRI * HTTP/2.0", b"CONNECT a:1 HTTP/1.1", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / a HTTP/1.1"],
)  # fmt: skip
def test_lines_that_are_no_request(steady: RunningApi, line: bytes) -> None:
    answer = steady.raw(line + b"\r\n" + HEAD + b"\r\n")
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 401", b"HTTP/1.1 404"))
    assert answer_time_s(steady) < 30


def test_headers_without_end_are_refused_within_their_bound(lodge: RunningApi) -> None:
    for sent in (b"X-One: " + b"a" * 4_000_000, b"".join(b"X-%d: 1\r\n" % number for number in range(300_000))):
        with open_connection(lodge) as connection:
            with suppress(OSError):  # it is cut while the rest of it is still on its way
                connection.sendall(b"GET /api/v1/me HTTP/1.1\r\nHost: a\r\n" + sent)
            answer = read_to_end(connection)
        assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    assert answer_time_s(lodge) < 30


@pytest.mark.parametrize(
    "path",
    [
        "acme/../zeta",
        "acme/%2e%2e/zeta",
        "acme/scripts/..%2f..%2fzeta",
        "acme/scripts/a%2fb",
        "acme/scripts/a%5cb",
        "./acme",
        "acme%2fschedules%2fs",
        "acme/./schedules/s",
    ],
)
def test_a_path_that_climbs_is_refused_before_it_is_looked_for(steady: RunningApi, path: str) -> None:
    """A proxy that tidies it up would have let another path through."""
    token = steady.token("viewer", "acme")
    sent = (
        f"GET /api/v1/tenants/{path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    answer = steady.raw(sent.encode())
    assert answer.startswith(b"HTTP/1.1 400"), answer[:200]
    assert body_of(answer)["code"] == "path_invalid"


@contextmanager
def open_connection(lodge: RunningApi) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", lodge.port), 20) as connection:
        yield connection


def test_a_body_that_takes_its_time_is_refused_and_delays_nobody(tmp_path: Path) -> None:
    with running_api(f"sqlite:///{tmp_path / 'l.db'}", api_body_s=0.5) as lodge:
        lodge.furnish()
        sent = request_head(
            lodge, "PUT", "/tenants/acme/scripts/x", "Content-Type: application/json", "Content-Length: 100"
        )
        with open_connection(lodge) as one, open_connection(lodge) as two:
            one.sendall(sent + b"{")
            two.sendall(sent)
            assert answer_time_s(lodge) < 30
            for connection in (one, two):
                answer = read_to_end(connection)
                assert answer.startswith(b"HTTP/1.1 408")
                assert body_of(answer)["code"] == "body_too_slow"
        assert [script.name for script in lodge.engine.scripts.list("acme")] == ["job"]


def test_a_gigabyte_is_refused_before_it_is_read(lodge: RunningApi) -> None:
    for path, media in (("x", "application/json"), ("x/module", "application/wasm")):
        sent = request_head(
            lodge, "PUT", f"/tenants/acme/scripts/{path}", f"Content-Type: {media}", f"Content-Length: {1 << 30}"
        )
        answer = lodge.raw(sent)
        assert answer.startswith(b"HTTP/1.1 413")
        assert body_of(answer)["code"] == "body_too_large"


def test_a_body_of_unknown_length_is_read_no_further_than_its_bound(lodge: RunningApi) -> None:
    """Endless chunks: the answer comes early, the connection ends, the memory of the process does not grow with what is sent."""
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    before = resident_bytes()
    sent = 0
    with open_connection(lodge) as connection:
        connection.sendall(
            request_head(
                lodge, "PUT", "/tenants/acme/scripts/x", "Content-Type: application/json", "Transfer-Encoding: chunked"
            )
        )
        try:
            while sent < 256 * 1024 * 1024:
                connection.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
        assert sent < 256 * 1024 * 1024, "it was read to its end"
        answer = read_to_end(connection)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413")
    assert resident_bytes() - before < 100 * 1024 * 1024
    assert answer_time_s(lodge) < 30


def test_all_bodies_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large body is refused while others hold the memory; a small one is always accepted."""
    monkeypatch.setattr(bodies, "MAX_HELD", 300_000)
    with running_api(f"sqlite:///{tmp_path / 'l.db'}", api_body_s=600, api_upload_bytes=1024) as lodge:
        lodge.furnish()
        sent = request_head(
            lodge, "PUT", "/tenants/acme/scripts/x", "Content-Type: application/json", "Content-Length: 150000"
        )
        put = {"headers": {"content-type": "application/json"}}
        with open_connection(lodge) as one:
            one.sendall(sent + b"x" * 140_000)
            while lodge.api.bodies.held < 140_000:
                answer_time_s(lodge)
            answer = lodge.ask("PUT", "/tenants/acme/scripts/y", content=b"x" * 80_000, **put)
            assert (answer.status_code, answer.json()["code"]) == (503, "server_busy")
            other = lodge.ask(
                "PUT", "/tenants/acme/scripts/y", role="editor", tenant="acme", content=b"x" * 80_000, **put
            )
            assert other.json()["code"] == "json_not_json", "one token holds half of the memory at most"
            assert (
                lodge.ask("PUT", "/tenants/acme/scripts/y", content=b"x" * 40_000, **put).json()["code"]
                == "json_not_json"
            )
        assert answer_time_s(lodge) < 30
        while lodge.api.bodies.held:
            answer_time_s(lodge)


def test_connections_are_bounded_and_served_again_when_some_have_ended(tmp_path: Path) -> None:
    with running_api(f"sqlite:///{tmp_path / 'l.db'}", api_connections=12) as lodge:
        lodge.furnish()
        shown = {"authorization": f"Bearer {lodge.token('viewer', 'acme')}", "connection": "close"}
        with ExitStack() as idle:
            for _ in range(11):
                idle.enter_context(open_connection(lodge))
            statuses = {lodge.http.get(f"{lodge.url}/api/v1/me", headers=shown).status_code for _ in range(3)}
            assert statuses == {503}, "uvicorn's own limit"
        # As soon as the server has seen that they are gone.
        assert any(lodge.http.get(f"{lodge.url}/api/v1/me", headers=shown).status_code == 200 for _ in range(500))


def test_a_thousand_idle_connections_keep_no_request_waiting(lodge: RunningApi) -> None:
    before = resident_bytes()
    with ExitStack() as idle:
        for _ in range(1000):
            idle.enter_context(open_connection(lodge))
        for _ in range(5):
            assert answer_time_s(lodge) < 30
        assert resident_bytes() - before < 64 * 1024 * 1024

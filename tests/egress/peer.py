"""Servers on the loopback that answer as told, well or badly, and a way out that may reach them."""

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.egress.name_server import NameServer

from lodger.engine.core.execution import Answer
from lodger.engine.core.settings import Settings
from lodger.engine.egress.request import Request
from lodger.engine.egress.way_out import WayOut

#: Answers one connection; the request's head and body are given.
Handler = Callable[["Asked", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Asked:
    """A request as it arrived: ``raw`` is its head, byte by byte."""

    raw: bytes
    body: bytes

    @property
    def line(self) -> str:
        return self.raw.split(b"\r\n")[0].decode()

    @property
    def headers(self) -> dict[str, str]:
        lines = self.raw.decode("latin-1").split("\r\n")[1:]
        return dict(line.split(": ", 1) for line in lines if line)


@dataclass
class Peer:
    """One server, in a thread of its own: what it was asked, and how it answers by path."""

    port: int = 0
    tls: ssl.SSLContext | None = None
    asked: list[Asked] = field(default_factory=list)
    paths: dict[str, bytes | Handler] = field(default_factory=dict)
    connections: int = 0
    open: int = 0
    max_open: int = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read the requests of a connection, and answer each by its path."""
        self.connections += 1
        self.open += 1
        self.max_open = max(self.max_open, self.open)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            asked = Asked(head[:-4], b"")
            sizes = {name.lower(): value for name, value in asked.headers.items()}
            length = int(sizes.get("content-length", 0))
            asked = Asked(head[:-4], await reader.readexactly(length))
            self.asked.append(asked)
            reported = self.paths.get(asked.line.split(" ")[1].partition("?")[0], answer(b"hello"))
            if isinstance(reported, bytes):
                writer.write(reported)
                await writer.drain()
            else:
                await reported(asked, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            self.open -= 1
            writer.close()


def answer(body: bytes = b"", status: str = "200 OK", *headers: str) -> bytes:
    """Write an answer with its length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def held_answer(raw: bytes, until: threading.Event) -> Handler:
    """Return a handler that answers once another thread has set an event."""

    async def answers(_asked: Asked, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not until.is_set():  # noqa: ASYNC110 - set in another thread
            await asyncio.sleep(0.01)
        writer.write(raw)
        await writer.drain()

    return answers


def redirect(to: str, status: str = "302 Found") -> bytes:
    """Return an answer that points to another URL."""
    return answer(b"", status, f"Location: {to}")


@contextmanager
def thread_of_peers(*peers: Peer, names: NameServer | None = None) -> Iterator[None]:
    """Serve in a loop of a thread, so that tests may use any loop, or none."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="peers", daemon=True)
    thread.start()

    async def up() -> list[asyncio.Server]:
        made = [await asyncio.start_server(peer.serve, "127.0.0.1", peer.port, ssl=peer.tls) for peer in peers]
        for peer, server in zip(peers, made, strict=True):
            peer.port = server.sockets[0].getsockname()[1]
        if names is not None:
            await names.__aenter__()
        return made

    async def down(servers: list[asyncio.Server]) -> None:
        for server in servers:
            server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for server in servers:
            await server.wait_closed()
        if names is not None:
            await names.__aexit__()
        await asyncio.sleep(0)

    servers = asyncio.run_coroutine_threadsafe(up(), loop).result(10)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(down(servers), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def opened(*peers: Peer, **more: Any) -> Settings:
    """Settings by which loopback may be reached at these ports."""
    given = {"egress_networks": "127.0.0.1/32", "egress_ports": " ".join(str(peer.port) for peer in peers), "egress_per_s": 10_000,
             "egress_host_per_s": 10_000, "egress_dns": "127.0.0.1:9"} | more  # fmt: skip
    return Settings(**given)


@contextmanager
def way_out(*peers: Peer, **more: Any) -> Iterator[Callable[..., Answer]]:
    """Return what makes one request and waits for its answer."""
    way = WayOut(opened(*peers, **more))

    def send(url: str, method: str = "GET", **request: Any) -> Answer:
        return asyncio.run(way.send(Request(method, url, **request)))

    try:
        yield send
    finally:
        way.stop()
        way.stop()

"""A proxy before a PostgreSQL server that is as far away as it is told, and counts the round trips of its clients.

A round trip begins when a client speaks after the server has answered; messages that it sends without waiting for an answer belong
to one. The counts are those of the protocol, so that no delay and no load of the machine changes them.
"""

import asyncio
import contextlib
import json
import selectors
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from sqlalchemy.engine import URL, make_url

from lodger.sandbox.loop_thread import LoopThread

_CHUNK = 1 << 16


class SlowProxy:
    """One proxy, on a loop of its own thread.

    Args:
        url: address of a database of the server.
        rtt_ms: time that each round trip takes longer.

    Attributes:
        url: address of the same database through the proxy.
        trips: round trips so far.
        messages: number of the connection and kinds of its messages, each one round trip; while :attr:`is_logging`.
    """

    def __init__(self, url: str, rtt_ms: float = 0.0) -> None:
        self.trips = 0
        self.is_logging = False
        self.messages: list[tuple[int, list[str]]] = []
        self._links = 0
        self._delay_s = rtt_ms / 2000
        place = make_url(url)
        self._host, self._port = _server_of(place)
        # A selector that waits for microseconds: the usual one rounds up to whole milliseconds.
        self._thread = LoopThread("slow-proxy", lambda: asyncio.SelectorEventLoop(selectors.SelectSelector()))
        self._server: asyncio.Server = self._thread.run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        query = {name: value for name, value in place.query.items() if name not in ("host", "port")}
        given = place.set(host="127.0.0.1", port=self.port, query=query | {"sslmode": "disable"})
        self.url = given.render_as_string(hide_password=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End every connection; safe to call twice."""
        if self._thread.is_alive:
            self._thread.loop.call_soon_threadsafe(self._server.close)
        self._thread.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            if self._host.startswith("/"):
                theirs, ours = await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._port}")
            else:
                theirs, ours = await asyncio.open_connection(self._host, self._port)
            ends.append(ours)
            self._links += 1
            link = _Link(self._links)
            await asyncio.gather(self._up(link, reader, ours), self._down(link, theirs, writer))
        except (OSError, asyncio.CancelledError):  # the server is down, an end has hung up, or the proxy is closed
            pass
        finally:
            for end in ends:
                end.close()

    async def _up(self, link: "_Link", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            kinds = link.kinds(data)
            # A cancelled or closed connection says X or nothing, and waits for no answer.
            if not link.is_waiting and kinds != ["X"]:
                self.trips += 1
                link.is_waiting = True
                if self.is_logging:
                    link.trip = []
                    self.messages.append((link.number, link.trip))
            if self.is_logging:
                link.trip += kinds
            self._pass(data, writer)
        self._hang_up(writer)

    async def _down(self, link: "_Link", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            link.is_waiting = False
            self._pass(data, writer)
        self._hang_up(writer)

    def _pass(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        if not self._delay_s:
            writer.write(data)
            return
        self._thread.loop.call_later(self._delay_s, _write, writer, data)

    def _hang_up(self, writer: asyncio.StreamWriter) -> None:
        self._thread.loop.call_later(self._delay_s, writer.close)


class _Link:
    """One client's connection: what it has said since the server's last word."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_waiting = False
        self.trip: list[str] = []
        self._is_started = False
        self._rest = b""
        self._prepared: dict[str, str] = {}

    def kinds(self, data: bytes) -> list[str]:
        """Return the messages that end in this chunk."""
        data, found = self._rest + data, []
        if not self._is_started:
            self._is_started, self._rest = True, b""
            return ["startup"]
        while len(data) >= 5:
            size = int.from_bytes(data[1:5]) + 1
            if len(data) < size:
                break
            found.append(self._named(chr(data[0]), data[5:size].decode(errors="replace").split("\0")))
            data = data[size:]
        self._rest = data
        return found

    def _named(self, kind: str, parts: list[str]) -> str:
        """Return a message's kind, with the text of a statement that is prepared (P), bound (B), or executed at once (Q)."""
        if kind == "P":
            self._prepared[parts[0]] = parts[1]
        text = parts[0] if kind == "Q" else self._prepared.get(parts[kind == "B"], "")
        return f"{kind} {text}" if kind in "PBQ" else kind


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    if not writer.is_closing():
        writer.write(data)


def _server_of(url: URL) -> tuple[str, int]:
    host, port = url.query.get("host") or url.host or "127.0.0.1", url.query.get("port") or url.port or 5432
    return str(host), int(str(port))


@contextmanager
def in_a_process(url: str, rtt_ms: float) -> Iterator[str]:
    """Run a proxy in a process of its own, whose CPU is not the client's; yield the address through it."""
    command = [sys.executable, "-m", "lodger.bench.slow_proxy", url, str(rtt_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield str(json.loads(process.stdout.readline()))
        finally:
            process.terminate()


if __name__ == "__main__":
    with SlowProxy(sys.argv[1], float(sys.argv[2])) as proxy:
        print(json.dumps(proxy.url), flush=True)  # noqa: T201 - the caller reads it
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()

"""A network between a client and the tests' PostgreSQL that can be cut, fall silent, lose one answer, or be slow.

A TCP port on loopback; what comes in goes to the server's Unix socket and back. It runs on a loop in a thread of its own, so
that a test says in one call what shall happen from now on.
"""

import asyncio
import contextlib
import re
import socket
import struct
import threading
from collections.abc import Coroutine
from typing import Any

from tests.databases.server import Server

#: What a client sends to commit, in PostgreSQL's protocol: a simple query, or the end of a pipeline.
COMMIT = re.compile(rb"Q\x00\x00\x00\x0bCOMMIT\x00\Z|\x00COMMIT\x00.{,40}S\x00\x00\x00\x04\Z", re.DOTALL)
#: Closing the socket then tells the other end at once, as a firewall does, not after what was sent.
_RESET = struct.pack("ii", 1, 0)


class Relay:
    """One network. Everything passes until it is told otherwise; :meth:`heal` makes it whole again.

    Attributes:
        lost: set when a commit was parted from its answer.
        held: set when it fell silent by itself (:meth:`silence_after`).
    """

    def __init__(self, server: Server) -> None:
        self._path = server.socket
        self.lost, self.held = threading.Event(), threading.Event()
        # Bound and never listening: the port refuses connections, and no other process can take it.
        self._holder = _bound(0)
        self.port: int = self._holder.getsockname()[1]
        self._links: set[_Link] = set()
        self._delay_s = 0.0
        self._marks: dict[str, bytes] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay")
        self._thread.start()
        self._events = {way: self._run_in_loop(_new_event()) for way in ("up", "down")}
        self._server: asyncio.Server | None = None
        self._run_in_loop(self._listen())

    def url(self, name: str, **options: str) -> str:
        """Return what Lodger opens to reach a database through it."""
        given = {"sslmode": "disable", "connect_timeout": "5"} | options
        more = "&".join(f"{key}={value}" for key, value in given.items())
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}?{more}"

    # ---- what happens to it

    def cut(self) -> None:
        """Reset every connection and refuse new ones."""
        self._run_in_loop(self._cut())

    def silence(self, *ways: str) -> None:
        """Keep every connection, and take new ones, but pass nothing on: ``up`` to the server, ``down`` to the client; both."""
        self._run_in_loop(self._silence(ways or ("up", "down")))

    def silence_after(self, mark: bytes) -> None:
        """Fall silent as soon as a client has sent ``mark``, which still arrives."""
        self._marks["silence"] = mark

    def silence_link(self, mark: bytes) -> None:
        """Let the connection that sends ``mark`` next, which still arrives, be silent from then on; the others go on."""
        self._marks["link"] = mark

    def lose_answer(self, mark: bytes) -> None:
        """Reset the connection on which the next transaction that sent ``mark`` is committed: after the commit, before the answer."""
        self._marks["answer"] = mark

    def lose_commit(self, mark: bytes) -> None:
        """Reset it before the commit arrives."""
        self._marks["commit"] = mark

    def slow(self, seconds: float) -> None:
        """Delay whatever is sent by so many seconds, each way."""
        self._delay_s = seconds

    def heal(self, old: str = "pass") -> None:
        """Pass everything on again. What was kept back meanwhile comes late (``pass``), or its connections are ended (``reset``),
        or stay as silent as they are (``forget``), as behind a balancer that has lost its table.
        """
        self._delay_s = 0.0
        self._marks.clear()
        self._run_in_loop(self._heal(old))

    def close(self) -> None:
        """End it; safe to call twice."""
        if self._thread.is_alive():
            self._run_in_loop(self._cut())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()
            self._holder.close()

    # ---- how

    def _run_in_loop(self, what: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the relay's thread; return its result."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(20)

    async def _listen(self) -> None:
        """Accept connections, unless it does already."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve_client, sock=_bound(self.port), backlog=100)

    async def _cut(self) -> None:
        """Stop accepting connections, and reset the present ones."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self._reset()

    async def _reset(self) -> None:
        """Reset all present connections."""
        links = list(self._links)
        for link in links:
            link.reset()
        await asyncio.gather(*(link.over.wait() for link in links))

    async def _silence(self, ways: tuple[str, ...]) -> None:
        """Hold back what comes in these directions."""
        for way in ways:
            self._events[way].clear()

    async def _heal(self, old: str) -> None:
        """Pass everything on again; ``old`` says what becomes of the present connections."""
        if old == "reset":
            await self._reset()
        if old == "forget":
            self._events = {way: await _new_event() for way in self._events}
        for event in self._events.values():
            event.set()
        await self._listen()

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes between a client and the server until one of them ends."""
        link = _Link(writer, self._events)
        self._links.add(link)
        try:
            theirs, ours = await asyncio.open_unix_connection(self._path)
            link.writers.append(ours)
            up = asyncio.create_task(self._pump(reader, ours, "up", link))
            down = asyncio.create_task(self._pump(theirs, writer, "down", link))
            link.tasks += [up, down]
            await asyncio.wait(link.tasks, return_when=asyncio.FIRST_COMPLETED)
        except OSError:  # the server is down
            pass
        finally:
            link.reset()
            await asyncio.gather(*link.tasks, return_exceptions=True)
            for each in link.writers:
                with contextlib.suppress(OSError):
                    await each.wait_closed()
            self._links.discard(link)
            link.over.set()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: str, link: "_Link") -> None:
        """Pass on what one side sends, unless that direction is silent or slow."""
        with contextlib.suppress(OSError):
            while said := await source.read(65536):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await link.gates[way].wait()
                if way == "up":
                    self._look_for_marks(link, said)
                    if link.doomed == "commit":
                        return
                elif link.doomed == "answer":
                    self.lost.set()
                    return
                sink.write(said)
                await sink.drain()
            # What ends while nothing passes is not heard of either.
            await link.gates[way].wait()

    def _look_for_marks(self, link: "_Link", said: bytes) -> None:
        """Carry out the fault whose mark a client has sent."""
        link.said = (link.said + said)[-262_144:]
        if (mark := self._marks.get("silence")) and mark in link.said:
            del self._marks["silence"]
            for event in self._events.values():
                event.clear()
            self.held.set()
        if (mark := self._marks.get("link")) and mark in link.said:
            del self._marks["link"]
            link.gates = {way: asyncio.Event() for way in link.gates}
            self.held.set()
        if COMMIT.search(link.said[-100:]):
            for kind in ("answer", "commit"):
                if (mark := self._marks.get(kind)) and mark in link.said:
                    del self._marks[kind]
                    link.doomed = kind
                    if kind == "commit":
                        self.lost.set()
            link.said = b""


class _Link:
    """One client's connection and the server's beside it."""

    def __init__(self, writer: asyncio.StreamWriter, gates: dict[str, asyncio.Event]) -> None:
        self.gates = gates
        self.writers = [writer]
        self.tasks: list[asyncio.Task[None]] = []
        self.over = asyncio.Event()
        self.said = b""
        self.doomed: str | None = None

    def reset(self) -> None:
        """End both at once."""
        for task in self.tasks:
            task.cancel()
        for writer in self.writers:
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()


async def _new_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


def _bound(port: int) -> socket.socket:
    """Return a socket that is bound to a port, which may be bound again."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    return made

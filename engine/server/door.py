"""Where connections come in: accepted, counted and listened to by the cheapest means, before anything is made for them.

asyncio's own server makes a transport, a protocol and a task for each connection that comes, in the order in which they came, and
uvicorn a parser: half a millisecond each, behind which a neighbour waits. Here a connection is a socket and what it said so far
until its first headers are whole. Whose they are is seen in them (over TLS: from where they come), and :class:`Porter` says who is
let in next. Whoever is slow to speak costs a socket, and is waited for as long as :data:`lodger.engine.server.wire.HEADERS_S` says.
"""

import asyncio
import errno
import logging
import select
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any

from lodger.engine.server import wire
from lodger.engine.server.gate import network
from lodger.engine.server.head import HEADER_BYTES, Head, shown
from lodger.engine.server.kernel import Kernel
from lodger.engine.server.known import Known
from lodger.engine.server.porter import A_TURN, Porter
from lodger.engine.server.turns import STRANGER

#: Connections that are accepted, and listened to, within one turn of the event loop.
ACCEPTED, HEARD = 100, 100
#: Seconds until somebody is accepted again when the process has no descriptor left.
RETRY_S = 1.0
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_log = logging.getLogger("lodger.api")


class Guest:
    """One that came: its socket, its place among all connections, what it said before it was let in."""

    __slots__ = ("_leave", "address", "head", "socket")

    def __init__(self, own: socket.socket, address: str, leave: Callable[[], None] | None) -> None:
        self.socket = own
        self.address = address
        self.head = Head()
        self._leave = leave

    def take(self) -> bytes:
        """Give what came before it was let in; from then on it is kept by who has it."""
        head, self.head = self.head, Head()
        return bytes(head.said)

    def leave(self) -> None:
        """Give the place back, once."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


class Door:
    """One listening socket. Belongs to the event loop in which it is opened.

    Args:
        listening: listens already; the door closes it.
        make: gives the protocol of one that is let in.
        most: connections that are held at once, three quarters of them of one address.
        proxies: whose addresses are many people's.
        tls: what is spoken here, None: plain words.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: "Callable[[Guest], asyncio.Protocol]",
        porter: Porter,
        known: Known,
        *,
        most: int,
        proxies: tuple[IPv4Network | IPv6Network, ...] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listening = listening
        self._make = make
        self._porter = porter
        self._known = known
        self._most = most
        self._proxies = proxies
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kernel = Kernel()
        #: One descriptor for all that are listened to: the event loop's own list costs five times as much for each, and hears all at once.
        self._ears: select.epoll
        self.held: Counter[str] = Counter()
        self._all = 0
        #: Those who are listened to, with the end of the patience with each, first come first; and all that were not let in yet.
        self._heard: dict[Guest, float] = {}
        self._speaking: dict[int, Guest] = {}
        self._outside: set[Guest] = set()
        self._entering: dict[asyncio.Task[Any], Guest] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._resting: asyncio.TimerHandle | None = None

    @property
    def outside(self) -> int:
        """Give how many came and were not let in yet."""
        return len(self._outside)

    def open(self) -> None:
        """Accept who comes."""
        self._loop = asyncio.get_running_loop()
        self._ears = select.epoll()
        self._loop.add_reader(self._ears, self._listen)
        self._listening.setblocking(False)
        self._loop.add_reader(self._listening, self._accept)

    async def close(self) -> None:
        """Listen no more; who was not let in is told so, or cut in the middle of a word."""
        loop, self._loop = self._loop, None
        if loop is None:
            self._listening.close()
            return
        for timer in (self._sweeping, self._resting):
            if timer is not None:
                timer.cancel()
        loop.remove_reader(self._listening)
        self._listening.close()
        loop.remove_reader(self._ears)
        self._ears.close()
        for guest in tuple(self._heard):
            self._away(guest)
        for guest in tuple(self._outside):
            self._away(guest, wire.words(503, "server_busy", "the server is being stopped", "try again in a moment"))
        entering = tuple(self._entering)
        for task in entering:
            task.cancel()
        await asyncio.gather(*entering, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(ACCEPTED):
            try:
                own, host = self._kernel.accept(self._listening)
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    return  # whoever it was is gone again
                _log.warning("no connection can be accepted: %s", error.strerror)
                self._rest()
                return
            self._welcome(own, host)

    def _rest(self) -> None:
        """Look away: the kernel would tell without end that somebody waits."""
        if self._loop is None:
            return
        self._loop.remove_reader(self._listening)
        self._resting = self._loop.call_later(RETRY_S, self._loop.add_reader, self._listening, self._accept)

    def _welcome(self, own: socket.socket, host: str) -> None:
        address = network(host)
        if self._all >= self._most:
            refusal = wire.words(503, "server_busy", "too many connections are open", "try again in a moment")
            self._cut(own, refusal)
            return
        if self.held[address] >= max(1, self._most * 3 // 4) and not self._of_many(host):
            refusal = wire.words(
                503, "server_busy", "too many connections of your address are open", "end some of them"
            )
            self._cut(own, refusal)
            return
        self._all += 1
        self.held[address] += 1
        guest = Guest(own, address, lambda: self._left(address))
        self._outside.add(guest)
        self._hear(guest, first=True)

    def _of_many(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return True  # a socket of this host's, which has no address
        return any(address in proxy for proxy in self._proxies)

    def _left(self, address: str) -> None:
        self._all -= 1
        self.held[address] -= 1
        if not self.held[address]:
            del self.held[address]

    def _listen(self) -> None:
        """Hear some of those who say something; the others in the next turn of the loop."""
        for descriptor, _ in self._ears.poll(0, HEARD):
            self._hear(self._speaking[descriptor])

    def _hear(self, guest: Guest, *, first: bool = False) -> None:
        """Listen to what one says."""
        try:
            data = self._kernel.read(guest.socket, peek=self._tls is not None)  # over TLS it cannot be read here
        except OSError:
            data = b""
        if data is None:
            if first:
                self._wait(guest)
            return
        whole = bool(data) if self._tls is not None else guest.head.add(data)
        if data and not whole:
            if first:
                self._wait(guest)
            return
        if not first:
            self._forget(guest)
        if not data:
            self._away(guest)
        elif self._tls is not None:
            self._porter.offer(STRANGER + guest.address, lambda: self._let_in(guest), A_TURN)
        else:
            name = self._known.owner(shown(guest.head.said)) or STRANGER + guest.address
            self._porter.offer(name, lambda: self._let_in(guest))

    def _wait(self, guest: Guest) -> None:
        loop = self._loop
        if loop is None:
            return
        self._heard[guest] = loop.time() + wire.HEADERS_S
        self._speaking[guest.socket.fileno()] = guest
        self._ears.register(guest.socket.fileno(), select.EPOLLIN)
        if self._sweeping is None:
            self._sweeping = loop.call_later(wire.HEADERS_S, self._sweep)

    def _forget(self, guest: Guest) -> None:
        """Listen no more."""
        self._heard.pop(guest)
        del self._speaking[guest.socket.fileno()]
        self._ears.unregister(guest.socket.fileno())

    def _sweep(self) -> None:
        """Tell those who took too long so."""
        loop, self._sweeping = self._loop, None
        if loop is None:
            return
        while self._heard:
            guest, end_s = next(iter(self._heard.items()))
            if end_s > loop.time():
                self._sweeping = loop.call_at(end_s, self._sweep)
                return
            self._forget(guest)
            self._away(guest, wire.too_slow())

    def _away(self, guest: Guest, said: bytes = b"") -> None:
        self._outside.discard(guest)
        self._cut(guest.socket, said)
        guest.leave()

    def _cut(self, own: socket.socket, said: bytes) -> None:
        """Say this much, where plain words are spoken, and end the connection."""
        with suppress(OSError):
            if said and self._tls is None:
                own.send(said, socket.MSG_DONTWAIT)
                own.recv(HEADER_BYTES, socket.MSG_DONTWAIT)  # what stays unread would take the answer back
        own.close()

    def _let_in(self, guest: Guest) -> None:
        loop = self._loop
        if loop is None or guest not in self._outside:
            return
        self._outside.discard(guest)
        patience = {"ssl_handshake_timeout": wire.HEADERS_S} if self._tls is not None else {}
        entering = loop.connect_accepted_socket(lambda: self._make(guest), guest.socket, ssl=self._tls, **patience)
        task = loop.create_task(entering)
        self._entering[task] = guest
        task.add_done_callback(self._entered)

    def _entered(self, task: "asyncio.Task[object]") -> None:
        """Let go of who did not come in: a handshake that failed or took too long, or the end of the server."""
        guest = self._entering.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is None and not task.cancelled():
            return
        guest.socket.close()
        guest.leave()
        if error is not None and not isinstance(error, OSError):
            task.get_loop().call_exception_handler({"message": "a connection was not made", "exception": error})
